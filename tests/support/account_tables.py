"""The DynamoDB of an account on this machine (ministack), behind the wire: it signs each request anew."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final
from unittest.mock import MagicMock
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3 import HTTPSConnectionPool

from scripts.account.server import Account
from scripts.image.docker import Docker
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from soal.local.names import REGION
from soal.testing.s3.exchange import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from soal.testing.s3.exchange import Request

__all__ = ["AccountTables", "account_without_docker"]

_TIMEOUT_S: Final = 60.0
_CONNECTIONS: Final = 32


def account_without_docker() -> Account:
    """Return a context manager: an account on the loopback that runs no function."""
    docker = MagicMock(spec=Docker, program="true", environment=dict(os.environ))
    docker.read.return_value = '{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}\n'
    return Account(docker, ensure_account(Place(ROOT)), memory_mb=512)


class AccountTables:
    """A backend of the wire. A signature holds for one server and one key: the wire's are not the account's."""

    def __init__(self, account: Account) -> None:
        aws = account.aws
        self._endpoint = account.endpoint
        self._keys = Credentials(aws["AWS_ACCESS_KEY_ID"], aws["AWS_SECRET_ACCESS_KEY"])
        address = urlsplit(account.endpoint)
        self._server = HTTPSConnectionPool(
            str(address.hostname), address.port, maxsize=_CONNECTIONS, timeout=_TIMEOUT_S, ca_certs=aws["AWS_CA_BUNDLE"]
        )

    def answer(self, request: Request) -> Reply:
        environ = request.environ
        headers = {"Content-Type": environ["CONTENT_TYPE"], "X-Amz-Target": environ["HTTP_X_AMZ_TARGET"]}
        signed = AWSRequest("POST", f"{self._endpoint}/", headers, request.body())
        SigV4Auth(self._keys, "dynamodb", REGION).add_auth(signed)
        answer = self._server.urlopen(
            "POST", "/", request.body(), dict(signed.headers.items()), retries=False, decode_content=False
        )
        return Reply(answer.status, tuple(answer.headers.items()), answer.data)

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        raise NotImplementedError("these are the account's tables only")

    def reset(self) -> None:
        """Keep the tables, since each test has one of its own; end the connections."""
        self._server.close()
