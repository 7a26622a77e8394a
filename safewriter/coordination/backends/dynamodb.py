"""Locks on DynamoDB: one item for each lock, changed by conditional writes, read with strong consistency."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.coordination.backend import RecordChanged, Stored
from safewriter.coordination.configuration import PREFIX
from safewriter.coordination.record import Record
from safewriter.entropy import unique_id
from safewriter.errors import SettingError, UnreadableCheckpointError
from safewriter.objects.client import client_of
from safewriter.objects.rights import lacking
from safewriter.objects.s3 import PAUSES_S
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backend import Connection

__all__ = ["DynamoDBBackend", "dynamodb_client"]

_T = TypeVar("_T")

_KEY: Final = "lock"
_RECORD: Final = "record"
_CHANGE: Final = "change"
_REFUSED: Final = "ConditionalCheckFailedException"
_NO_TABLE: Final = "ResourceNotFoundException"
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
_AGAIN: Final = (
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
)


class _Client(Protocol):
    """The part of boto3's client that is used here."""

    @property
    def meta(self) -> Any: ...  # noqa: ANN401 - as boto3
    def get_item(self, **request: Any) -> dict[str, Any]: ...  # noqa: ANN401 - as boto3
    def put_item(self, **request: Any) -> dict[str, Any]: ...  # noqa: ANN401 - as boto3
    def scan(self, **request: Any) -> dict[str, Any]: ...  # noqa: ANN401 - as boto3


def dynamodb_client() -> _Client:
    """Make a client whose calls end in bounded time. As on S3, its own retries are off: `write` reads back instead."""
    from botocore.config import Config

    config = Config(
        connect_timeout=2.0,
        read_timeout=5.0,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=16,
    )
    client: _Client = client_of("dynamodb", config)
    return client


class DynamoDBBackend:
    """Locks in one table, whose partition key is the text `lock`.

    DynamoDB keeps the conditions of writes. Any other `server` is probed.
    """

    def __init__(
        self, client: _Client, table: str, *, server: str = "", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep
        self.server = server

    def read(self, lock: str) -> Stored | None:
        item = self._tried("GetItem", lambda: self._item(lock))
        if item is None:
            return None
        try:
            body, change = str(item[_RECORD]["S"]), str(item[_CHANGE]["S"])
        except KeyError as error:
            raise UnreadableCheckpointError(f"{self._uri(lock)} has no attribute {error}; restore the table") from error
        return Stored(Record.decode(body.encode(), self._uri(lock)), change)

    def write(self, record: Record, after: Stored | None) -> Stored:
        """Write if the record still is as in `after`; after any error read the item back.

        Each write has its own id, so an item with that id is the one written here.
        """
        change = unique_id()
        for pause_s in (*PAUSES_S, None):
            try:
                self._put(record, change, after)
            except (ClientError, BotoCoreError) as error:
                item = self._tried("GetItem", lambda: self._item(record.lock))
                if item is None or item.get(_CHANGE) != {"S": change}:
                    if _code(error) == _REFUSED:
                        raise RecordChanged(record.lock) from error
                    if pause_s is None or not _again(error):
                        raise self._failure("PutItem", error) from error
                    self._sleep(pause_s)
                    continue
            return Stored(record, change)
        raise AssertionError

    def wait(self, last: Stored | None, timeout_s: float, after: str = "") -> None:  # noqa: ARG002 - DynamoDB reports no changes
        self._sleep(timeout_s)

    def locks(self) -> Iterator[str]:
        more: dict[str, Any] = {}
        while True:
            page = self._tried("Scan", functools.partial(self._page, more))
            yield from sorted(str(item[_KEY]["S"]) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """DynamoDB has no sessions."""

    def close(self) -> None:
        """DynamoDB has no sessions."""

    def _item(self, lock: str) -> dict[str, dict[str, str]] | None:
        answer = self._client.get_item(TableName=self._table, Key={_KEY: {"S": lock}}, ConsistentRead=True)
        return answer.get("Item")

    def _put(self, record: Record, change: str, after: Stored | None) -> None:
        if after is None:
            condition: dict[str, Any] = {
                "ConditionExpression": "attribute_not_exists(#name)",
                "ExpressionAttributeNames": {"#name": _KEY},
            }
        else:
            condition = {
                "ConditionExpression": "#name = :after",
                "ExpressionAttributeNames": {"#name": _CHANGE},
                "ExpressionAttributeValues": {":after": {"S": str(after.version)}},
            }
        item = {_KEY: {"S": record.lock}, _RECORD: {"S": record.encode().decode()}, _CHANGE: {"S": change}}
        self._client.put_item(TableName=self._table, Item=item, **condition)

    def _page(self, more: dict[str, Any]) -> dict[str, Any]:
        names = {"ProjectionExpression": "#lock", "ExpressionAttributeNames": {"#lock": _KEY}}
        return self._client.scan(TableName=self._table, ConsistentRead=True, **names, **more)

    def _tried(self, verb: str, request: Callable[[], _T]) -> _T:
        for pause_s in (*PAUSES_S, None):
            try:
                return request()
            except (ClientError, BotoCoreError) as error:
                if pause_s is None or not _again(error):
                    raise self._failure(verb, error) from error
                self._sleep(pause_s)
        raise AssertionError

    def _failure(self, verb: str, error: Exception) -> Exception:
        if _code(error) == _NO_TABLE:
            return SettingError(
                f"{PREFIX}backend",
                f"there is no DynamoDB table {self._table}. The stack makes one with the context key"
                f" coordination=dynamodb; by hand: aws dynamodb create-table --table-name {self._table}"
                f" --attribute-definitions AttributeName={_KEY},AttributeType=S"
                f" --key-schema AttributeName={_KEY},KeyType=HASH --billing-mode PAY_PER_REQUEST",
            )
        denied = isinstance(error, ClientError) and not _again(error)
        right = lacking(error, "dynamodb", "the table")
        return StoreError(f"{verb} dynamodb://{self._table}: {error}{right}", denied=denied)

    def _uri(self, lock: str) -> str:
        return f"dynamodb://{self._table}/{lock}"


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _again(error: Exception) -> bool:
    """Return whether the same request may succeed a moment later."""
    if not isinstance(error, ClientError):
        return True
    return error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500 or _code(error) in _AGAIN  # noqa: PLR2004
