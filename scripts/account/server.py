"""The account's server: ministack behind one address, which this machine and the function's containers share.

It listens on the gateway of Docker's bridge, which no other machine reaches. A function runs in a container of the
image that its stack names, with Lambda's read-only root and memory.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shlex
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from scripts.account.certificate import Certificate
from scripts.emulator.rie import free_port
from scripts.image.docker import DockerError
from scripts.process_owner import end
from scripts.provision.place import ROOT
from soal.console.problem import Failure
from soal.local.names import CREDENTIALS, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scripts.image.docker import Docker
    from scripts.provision.account import Programs

ACCOUNT: Final = "123456789012"
_OTHERS: Final = ("AWS_", "CDK_", "SOAL_", "SW_")
_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 90.0
_POLL_S: Final = 0.05
_TAIL_LINES: Final = 20
_TMP: Final = "/tmp:rw,exec,nosuid,nodev,size=2048m,mode=1777"  # noqa: S108 - the container's
"""As the function's ephemeral storage has it by default: ministack does not take it from the function."""
_WARM_S: Final = 600
"""A sandbox without work ends after this time, as on Lambda, where nothing promises a time."""


class Account:
    """A context manager: `with Account(docker, programs) as account: …`.

    `aws` are the variables of its clients, who sign as the account's administrator. Its processes and containers end
    with the block, or with this process, even if it is killed. `memory_mb`: that of every container, by default the
    stack's.
    """

    def __init__(self, docker: Docker, programs: Programs, *, memory_mb: int = 3008) -> None:
        self.docker = docker
        self._programs = programs
        self._memory_mb = memory_mb
        self._stack = ExitStack()
        self._host = f"soal-{uuid.uuid4().hex[:12]}"
        self._port = 0
        self._address = ""
        self.folder = Path()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._address = bridge_address(self.docker)
            self._port = free_port(self._address)
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-account-")))
            self.certificate.make(self._address)
            with self.log.open("wb") as log:
                owner = subprocess.Popen(
                    self._command(),
                    env=self._server_variables(),
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for us: we end it in order
                )
            stack.callback(end, owner, _END_TIMEOUT_S)
            self._wait_for(owner)
            # The server has read it. Without the file ministack does not copy the certificate into containers, which
            # fails on a read-only root.
            self.certificate.key.unlink()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def endpoint(self) -> str:
        return f"https://{self._address}:{self._port}"

    @property
    def certificate(self) -> Certificate:
        """What its clients trust."""
        return Certificate(self.folder)

    @property
    def _key(self) -> Path:
        """The key of its administrator, which the server writes before it answers."""
        return self.folder / "administrator.json"

    @property
    def label(self) -> str:
        """The label of its containers."""
        return f"ministack.instance={self._host}:{self._port}"

    @property
    def log(self) -> Path:
        return self.folder / "ministack.log"

    @property
    def aws(self) -> dict[str, str]:
        """The variables of AWS's clients; none of the caller's own is among them."""
        nobody = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        trusted = str(self.certificate.pem)
        trust = {"AWS_CA_BUNDLE": trusted, "NODE_EXTRA_CA_CERTS": trusted}
        own = json.loads(self._key.read_text(encoding="utf-8"))
        return {**CREDENTIALS, **nobody, **trust, **own, "AWS_ENDPOINT_URL": self.endpoint}

    def containers(self, *, function: str | None = None, with_ended: bool = False) -> tuple[str, ...]:
        """Return the ids of its containers that run, of one function or of all; or of all that there are."""
        which = ("--all",) if with_ended else ()
        listed = self._listed(*which)
        return tuple(one for one in listed if function is None or self._function_in(one) == function)

    def _listed(self, *which: str) -> tuple[str, ...]:
        words = ("ps", "--quiet", "--no-trunc", *which, "--filter", f"label={self.label}")
        return tuple(self.docker.read(*words).split())

    def _function_in(self, container: str) -> str | None:
        """Return the name of the function that a container runs; None if the account has removed the container."""
        try:
            variables = json.loads(self.docker.read("inspect", "--format", "{{json .Config.Env}}", container))
        except DockerError:
            if container in self._listed("--all"):
                raise
            return None
        named = (text.partition("=") for text in variables)
        return next((value for name, _, value in named if name == "AWS_LAMBDA_FUNCTION_NAME"), None)

    def _command(self) -> tuple[str, ...]:
        owner = (sys.executable, "-P", "-m", "scripts.process_owner", "--docker", self.docker.program)
        kept = ("--containers", f"label={self.label}", "--folder", str(self.folder))
        return (*owner, *kept, *self._programs.emulator, str(self._key))

    def _server_variables(self) -> dict[str, str]:
        limits = ("--read-only", "--tmpfs", _TMP, "--memory", f"{self._memory_mb}m")
        own = {name: value for name, value in self.docker.environment.items() if not name.startswith("AWS_")}
        return {
            **own,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.folder),
            "BIND_HOST": self._address,
            "GATEWAY_PORT": str(self._port),
            "MINISTACK_HOST": self._address,
            "MINISTACK_HOSTNAME": self._host,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "LAMBDA_EXECUTOR": "docker",
            "LAMBDA_STRICT": "1",  # without Docker a function fails: it never runs as a program of this machine
            "LAMBDA_WARM_TTL_SECONDS": str(_WARM_S),
            "LAMBDA_DOCKER_FLAGS": shlex.join([*limits, *self.certificate.container_options()]),
            "AUTH": "true",
            "USE_SSL": "1",  # the policies of buckets, also of the bootstrap's, deny roles all without TLS
            "MINISTACK_SSL_CERT": str(self.certificate.pem),
            "MINISTACK_SSL_KEY": str(self.certificate.key),
        }

    def _wait_for(self, owner: subprocess.Popen[bytes]) -> None:
        """Wait for the first handshake: the port is open before the server has read its certificate."""
        trusting = ssl.create_default_context(cafile=str(self.certificate.pem))
        until = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < until and owner.poll() is None:
            with suppress(OSError), socket.create_connection((self._address, self._port), timeout=1) as plain:
                trusting.wrap_socket(plain, server_hostname=self._address).close()
                return
            time.sleep(_POLL_S)
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
        raise Failure("\n".join(["ministack did not start", *said]), todo="see above")


def environment(aws: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a client with these variables: the caller's, but nothing that leads elsewhere."""
    return {**{name: os.environ[name] for name in os.environ if not name.startswith(_OTHERS)}, **aws}


def bridge_address(docker: Docker) -> str:
    """Return the address at which containers reach this machine. Raises `Failure` without one."""
    try:
        bridge = json.loads(docker.read("network", "inspect", "bridge", "--format", "{{json (index .IPAM.Config 0)}}"))
    except DockerError as error:
        raise Failure(
            f"the containers of an account need Docker's network `bridge`, which is not there: {error}",
            todo="start Docker itself, as the system does, or set DOCKER_HOST",
        ) from error
    # A daemon that has just made its bridge names no gateway before its next start. It took the subnet's first address
    # then: another one has to be configured, and is named.
    return str(bridge.get("Gateway") or ipaddress.ip_network(bridge["Subnet"])[1])
