"""The certificate of an account's server: for its address, trusted by its clients only, and gone with its folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_DAYS: Final = 365
_NAME: Final = "an account on this machine"
_PASSWORD: Final = "not-a-secret"  # noqa: S105 - Java opens no store without one; certificates are public
_PEM, _TRUSTSTORE = "/run/account.pem", "/run/account.p12"
"""Their paths in a container."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate in a folder that nobody else reads."""

    folder: Path

    @property
    def pem(self) -> Path:
        """The certificate, which is also all that a client trusts."""
        return self.folder / "account.pem"

    @property
    def key(self) -> Path:
        return self.folder / "account.key"

    @property
    def truststore(self) -> Path:
        """The certificate as Java trusts it."""
        return self.folder / "account.p12"

    def make(self, address: str) -> None:
        """Make the files for a server at an IP address; the key signs nothing else."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _signed(key, address)
        self.pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        with os.fdopen(os.open(self.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        how = serialization.BestAvailableEncryption(_PASSWORD.encode())
        store = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(made, b"account")], how)
        self.truststore.write_bytes(store)

    def container_options(self) -> tuple[str, ...]:
        """Return the options of `docker run` with which Python and Java trust it in a function's container."""
        store = (f"trustStore={_TRUSTSTORE}", "trustStoreType=pkcs12", f"trustStorePassword={_PASSWORD}")
        java = " ".join(f"-Djavax.net.ssl.{option}" for option in store)
        mounts = ("-v", f"{self.pem}:{_PEM}:ro", "-v", f"{self.truststore}:{_TRUSTSTORE}:ro")
        return (*mounts, "-e", f"AWS_CA_BUNDLE={_PEM}", "-e", f"JAVA_TOOL_OPTIONS={java}")


def _signed(key: ec.EllipticCurvePrivateKey, address: str) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    now = dt.datetime.now(dt.UTC)
    ends, day = dt.timedelta(days=_DAYS), dt.timedelta(days=1)
    of_address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + ends)
        .add_extension(of_address, critical=False)
        # No authority: Rust's webpki, by which deltalake reads, takes none for a server.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
