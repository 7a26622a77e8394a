"""SeaweedFS as the S3 behind the wire: a program in Go that nobody here wrote, with an Iceberg REST catalog of its own.

It applies requests at once, and checks the signatures that the clients have made. A browser reaches none of its data:
each request needs a signature, a login or a token (docs/campaign.md says how it differs from Amazon's S3).
"""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from safewriter.objects.client import client_of
from scripts.emulator.seaweedfs_backup import backup
from scripts.provision.place import ROOT
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3.wire import OBSERVER, forward

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request

_PROGRAM: Final = Path(sysconfig.get_path("scripts")) / "weed"
_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_SAID_MAX: Final = 2000
_S3: Final = "s3.port"
_SHELL: Final = ("master", "filer")
"""The servers that `weed shell` asks."""
_ICEBERG: Final = "s3.port.iceberg"
_PORTS: Final = tuple(f"{name}.port{kind}" for name in ("master", "volume", "filer", "s3") for kind in ("", ".grpc"))
_TOKENS: Final = ("SIGNING", "FILER_SIGNING", "SIGNING_READ", "FILER_SIGNING_READ")
_VOLUME_MB: Final = 64
_VOLUMES_MAX: Final = 10_000
"""Each bucket has volumes of its own, and an empty one takes no space."""
_CATALOG: Final = "seaweedfs-catalog"


class SeaweedFS:
    """A context manager: `with SeaweedFS() as backend, EmbeddedS3(backend=backend) as s3: …`.

    The server and its files end with the block, or with this process, even if it is killed. Raises `FileNotFoundError`
    if the program is not installed, `RuntimeError` if it does not start.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._ports = dict.fromkeys((*_PORTS, _ICEBERG), 0)
        self._log = Path()
        self._warehouses: set[str] = set()

    def __enter__(self) -> Self:
        if not _PROGRAM.is_file():
            raise FileNotFoundError(f"{_PROGRAM} is not there; run scripts/setup")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-seaweedfs-")))
            self._ports = dict(zip(self._ports, _free_ports(len(self._ports)), strict=True))
            self._log = folder / "log"
            self._wait(self._started(folder, stack))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def answer(self, request: Request) -> Reply:
        """Pass a request on as it came: its signature holds for the name by which the client has called the wire."""
        environ = request.environ
        return forward(self._address(_S3), request, path=environ["RAW_URI"], host=environ["HTTP_HOST"])

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        client = self._client()
        for key, body in objects.items():
            client.put_object(Bucket=bucket, Key=key, Body=body)

    @property
    def endpoint(self) -> str:
        """The URL of the server itself: requests there pass no wire."""
        return f"http://{self._address(_S3)}"

    def make_bucket(self, name: str) -> None:
        """Make a bucket, for clients of `endpoint`."""
        self._client().create_bucket(Bucket=name)

    def load(self, bucket: str, keys: Sequence[str], body: bytes, *, ahead_s: int = 0) -> None:
        """Create many small objects with the same body, none of which is there, without a request for each.

        100,000 take half a minute. The S3 dates them by `ahead_s` in the future. Raises `RuntimeError` if the server
        does not take them.
        """
        servers = [f"-{name}={self._address(f'{name}.port')}.{self._ports[f'{name}.port.grpc']}" for name in _SHELL]
        with tempfile.NamedTemporaryFile(prefix="soal-seaweedfs-", suffix=".meta") as file:
            file.writelines(backup(bucket, keys, body, int(time.time()) + ahead_s))
            file.flush()
            with subprocess.Popen(
                [str(_PROGRAM), "shell", *servers],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as shell:
                said = _told(shell, f"fs.meta.load -v=false -concurrency=1 {file.name}")
                # The command does not wait for its last object, and if the shell ended before it, the filer would, too.
                if not (said.endswith("is loaded.") and self._has(bucket, keys[-1])):
                    shell.kill()
                    raise RuntimeError(f"SeaweedFS did not take {bucket}'s objects: {said}")
                shell.communicate(timeout=_END_TIMEOUT_S)

    def _has(self, bucket: str, key: str) -> bool:
        """Wait until an object is there; return False if it does not come."""
        client, until = self._client(), time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < until:
            if client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents"):
                return True
            time.sleep(_POLL_S)
        return False

    def reset(self) -> None:
        client = self._client()
        for bucket in client.list_buckets()["Buckets"]:
            if bucket["Name"] not in self._warehouses:
                client.delete_bucket(Bucket=bucket["Name"])  # with all that is in it

    def catalog(self, s3: EmbeddedS3, warehouse: str) -> dict[str, str]:
        """Make a warehouse, and return the properties of its REST catalog, the same for Iceberg and pyiceberg.

        Clients log in by OAuth, and reach the catalog through the wire of `s3`. Its tables are in the bucket
        `warehouse`.
        """
        self._make(warehouse)
        address = self._address(_ICEBERG)
        s3.wire.lead(_CATALOG, address, address)
        uri = f"{s3.endpoint}/{_CATALOG}"
        return {
            "type": "rest",
            "uri": uri,
            "warehouse": f"s3://{warehouse}",
            "credential": f"{CREDENTIALS['AWS_ACCESS_KEY_ID']}:{CREDENTIALS['AWS_SECRET_ACCESS_KEY']}",
            "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        }

    def signed_catalog(self, warehouse: str) -> dict[str, str]:
        """Make a warehouse, and return the properties of its REST catalog for clients that sign for `s3tables`.

        They ask the server itself: a signature holds for one address.
        """
        self._make(warehouse)
        uri, files = (f"http://{self._address(name)}" for name in (_ICEBERG, _S3))
        where = {"uri": uri, "warehouse": f"s3://{warehouse}", "s3.endpoint": files}
        return {"type": "rest", **where, "rest.signing-name": "s3tables"}

    def _make(self, warehouse: str) -> None:
        self._client("s3tables").create_table_bucket(name=warehouse)
        self._warehouses.add(warehouse)

    def _started(self, folder: Path, stack: ExitStack) -> subprocess.Popen[bytes]:
        keys = folder / "keys.json"
        secret = CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
        identities = [
            {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": ["Admin"]}
            for key in (CREDENTIALS["AWS_ACCESS_KEY_ID"], OBSERVER)
        ]
        keys.write_text(json.dumps({"identities": identities}), encoding="utf-8")
        owner = (sys.executable, "-P", "-m", "scripts.process_owner", "--folder", str(folder))
        log = stack.enter_context(self._log.open("wb"))
        process = subprocess.Popen(
            [*owner, str(_PROGRAM), "-logtostderr=true", "server", *self._options(folder, keys)],
            # Nobody but the servers themselves may ask for a part of an object, or change one.
            env={"PYTHONPATH": str(ROOT), **{f"WEED_JWT_{name}_KEY": secrets.token_hex() for name in _TOKENS}},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for this process
        )
        stack.callback(_end, process)
        return process

    def _options(self, folder: Path, keys: Path) -> list[str]:
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        sockets = [f"-{name}.localSocket={folder / name}" for name in ("filer", "s3")]
        return [
            f"-dir={folder}",
            "-ip=127.0.0.1",
            "-disableHttp",  # master and filer would also answer web pages
            "-master.telemetry=false",
            f"-master.volumeSizeLimitMB={_VOLUME_MB}",
            f"-volume.max={_VOLUMES_MAX}",
            "-volume.minFreeSpace=100MiB",  # its own default is a hundredth of the disk
            "-filer",
            "-s3",
            f"-s3.config={keys}",
            "-s3.port.lance=0",
            "-s3.autoCreateBucket=false",
            *ports,
            *sockets,
        ]

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until an object can be written. The client tries each request once."""
        client, until, last = self._client(), time.monotonic() + _START_TIMEOUT_S, ""
        while time.monotonic() < until and process.poll() is None:
            try:
                if not client.list_buckets()["Buckets"]:
                    client.create_bucket(Bucket="ready")
                client.put_object(Bucket="ready", Key="ready", Body=b"")
                return self.reset()
            except (ClientError, BotoCoreError) as error:
                last = str(error)
                time.sleep(_POLL_S)
        said = self._log.read_text(encoding="utf-8", errors="replace")[-_SAID_MAX:]
        raise RuntimeError(f"SeaweedFS did not start: {last}\n{said}")

    def _address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def _client(self, service: str = "s3") -> Any:  # noqa: ANN401 - a boto3 client
        session = boto3.session.Session(OBSERVER, CREDENTIALS["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, proxies={})
        return client_of(service, config, endpoint=self.endpoint, session=session)


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now, all held until the last one is known: so none is there twice."""
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(server.getsockname()[1]) for server in servers]


def _told(shell: subprocess.Popen[str], command: str) -> str:
    """Send a command to a shell, and return its words up to those that say how it has ended."""
    if shell.stdin is None or shell.stdout is None:
        raise AssertionError  # for the type checker
    print(command, file=shell.stdin, flush=True)
    said = ""
    for line in shell.stdout:
        said = (said + line)[-_SAID_MAX:]
        if "is loaded." in line or "error:" in line:
            break
    return said.strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait(_END_TIMEOUT_S)
