"""One version of a Delta log, as far as a guard must understand it.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from safewriter.bounds import space_bytes, space_of, whole
from safewriter.identity import EPOCH_MAX
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "FENCE",
    "HELD_MAX_BYTES",
    "LINE_MAX_BYTES",
    "RESTORE",
    "REVERT",
    "Added",
    "Commit",
    "Signature",
    "first_line",
    "is_on",
]

FENCE: Final = "SAFEWRITER FENCE"
REVERT: Final = "SAFEWRITER REVERT"
RESTORE: Final = "RESTORE"
"""Delta's own operation."""
HELD_MAX_BYTES: Final = 64 << 20
"""The most memory for the versions of one table that a settler holds: about 100,000 added or 200,000 removed files."""
LINE_MAX_BYTES: Final = 8 << 20
"""The limit of a line; the longest is that of a schema with thousands of columns."""
_SPACE_MAX_BYTES: Final = 64 << 20
"""The most memory for the values of one line while it is parsed."""
_SMALL_BYTES: Final = 64 << 10
_ONE_LARGE_LINE: Final = threading.Lock()
"""A sweep settles several tables at once; their large lines are parsed one after the other."""
_COMMIT_BYTES: Final = 400
"""What Python takes for a commit without any action."""
_EACH_BYTES: Final = 240
"""What Python takes for an action besides the characters of its texts."""
_SHOWN_MAX: Final = 100
_ENDS: Final = re.compile(r"[/?#]")
"""The characters that end a name in a path or a URI."""
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_FILES: Final = frozenset({"add", "remove", "cdc"})
_INFO: Final = ("operation", "userMetadata", "isBlindAppend")
_VERSIONS: Final = ("minReaderVersion", "minWriterVersion")
_TIMES: Final = ("timestamp", "inCommitTimestamp")
_FEATURES: Final = ("readerFeatures", "writerFeatures")
_OF_A_REMOVAL: Final = ("partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_NEEDED: Final = ("path", "partitionValues", "size")
"""The protocol demands them of a removal with `extendedFileMetadata`, or of an added file."""

# An operation that rewrites files counts the rows that it copied as output, too.
_CHANGED: Final = {
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The guard's text in the `userMetadata` of its own commits: whose fence it is, or which version it reverts."""

    write_key: str
    epoch: int
    reverts: int | None = None

    def to_text(self) -> str:
        """Return the signature as the text that `DESCRIBE HISTORY` shows."""
        return json.dumps({"safewriter": {"key": self.write_key, "epoch": self.epoch, "reverts": self.reverts}})

    @classmethod
    def from_text(cls, text: object) -> Signature | None:
        """Read a signature back; None for any other text."""
        try:
            fields = parsed(str(text))["safewriter"]
            key, epoch, reverts = fields["key"], whole(fields["epoch"]), fields.get("reverts")
            return cls(key, epoch, None if reverts is None else whole(reverts))
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True, slots=True)
class Added:
    """A file that a commit has added. `about`: the fields that a removal of it repeats, as JSON: most are never read,
    and a text takes a fraction of the memory.
    """

    path: str
    changes_data: bool
    is_whole: bool
    """Whether it has all fields that the protocol demands."""
    size: int
    about: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A version with what a settler needs of its actions: statistics of files, which fill most of a log, are left out.

    The paths of `removes` and `cdc` are decoded. `held_bytes`: about how much memory the commit takes. `adds_others`:
    it adds files that its reader has left out.
    """

    version: int
    info: dict[str, Any]
    adds: tuple[Added, ...]
    removes: tuple[str, ...]
    cdc: tuple[str, ...]
    removes_data: bool
    transactions: dict[str, int]
    metadata: dict[str, Any] | None
    protocol: dict[str, Any] | None
    domains: tuple[str, ...]
    held_bytes: int
    adds_others: bool

    @classmethod
    def parse(
        cls,
        version: int,
        body: bytes | Iterable[bytes],
        *,
        most_bytes: int = HELD_MAX_BYTES,
        only: Callable[[str], bool] | None = None,
    ) -> Commit:
        """Parse the JSON lines of a commit, as a whole or in blocks, one line after the other.

        `only`: leave out every file whose path, as it stands in the log, does not satisfy it. Raises `ValueError` if
        the lines are not valid, or if they would take more memory than `most_bytes`.
        """
        actions = _Actions(most_bytes, only)
        for line in _lines([body] if isinstance(body, bytes) else body):
            if line.strip():
                actions.take(line)
        return cls(
            version=version,
            info=actions.info or {},
            adds=tuple(actions.adds),
            removes=tuple(actions.removes),
            cdc=tuple(actions.cdc),
            removes_data=actions.removes_data,
            transactions=actions.transactions,
            metadata=actions.metadata,
            protocol=actions.protocol,
            domains=tuple(actions.domains),
            held_bytes=actions.held_bytes,
            adds_others=actions.adds_others,
        )

    @property
    def signature(self) -> Signature | None:
        """The guard's signature, if this is a fence or a revert."""
        is_ours = self.info.get("operation") in (FENCE, REVERT)
        return Signature.from_text(self.info.get("userMetadata")) if is_ours else None

    @property
    def owners(self) -> set[str]:
        """The application ids of its transactions and of the guard's signature."""
        return {*self.transactions, *((self.signature.write_key,) if self.signature is not None else ())}

    @property
    def paths(self) -> set[str]:
        """The decoded paths of all files that this version refers to: keys relative to the table, or URIs."""
        return {*(unquote(added.path) for added in self.adds), *self.removes, *self.cdc}

    @property
    def names(self) -> Iterator[str]:
        """The names in all these paths, of folders too: they identify a file, whether its path is relative, with or
        without dots, or a URI.
        """
        # A name may hold a character that ends one in a URI.
        return (name for path in self.paths for name in {*path.split("/"), *_ENDS.split(path)})

    @property
    def changes_data(self) -> bool:
        """Whether it changes rows; a compaction only moves them."""
        return self.removes_data or any(added.changes_data for added in self.adds)

    @property
    def is_blind_append(self) -> bool:
        """Whether it adds rows and has read none. Engines other than Spark do not record this for an append."""
        said = self.info.get("isBlindAppend")
        mode = (self.info.get("operationParameters") or {}).get("mode")
        appends = self.info.get("operation") == "WRITE" and str(mode).strip('"').lower() == "append"
        return not self.removes and (said is True or (said is None and appends))

    def settles(self, write_key: str, epoch: int) -> bool:
        """Return whether this is a commit or a fence of the write with this epoch or a later one."""
        latest = self.epoch_of(write_key)
        return latest is not None and latest >= epoch

    def epoch_of(self, write_key: str) -> int | None:
        """Return the epoch of a write's transaction in it; None if there is none, or if it is out of range."""
        epoch = self.transactions.get(write_key)
        return epoch if epoch is not None and 0 <= epoch <= EPOCH_MAX else None

    @property
    def rows(self) -> int | None:
        """The number of rows that the operation reports as written, updated or deleted; None if it reports none."""
        metrics = self.info.get("operationMetrics", {})
        names = _CHANGED.get(str(self.info.get("operation")), ("numOutputRows",))
        counts = [count for name in names if (count := _whole(metrics.get(name))) is not None]
        return sum(counts) if counts else None

    @property
    def bytes(self) -> int:
        """The size of all files added, in bytes."""
        return sum(added.size for added in self.adds)


class _Actions:
    """The actions of one commit, collected line by line."""

    def __init__(self, most_bytes: int, only: Callable[[str], bool] | None) -> None:
        self._most_bytes = most_bytes
        self._only = only
        self.adds_others = False
        self.held_bytes = 0
        self._hold(_COMMIT_BYTES)
        self.info: dict[str, Any] | None = None
        self.adds: list[Added] = []
        self.removes: list[str] = []
        self.cdc: list[str] = []
        self.removes_data = False
        self.transactions: dict[str, int] = {}
        self.metadata: dict[str, Any] | None = None
        self.protocol: dict[str, Any] | None = None
        self.domains: list[str] = []

    def take(self, line: bytes) -> None:
        if len(line) <= _SMALL_BYTES:
            self._take(line)
            return
        if (space := space_bytes(line)) > _SPACE_MAX_BYTES:
            raise ValueError(f"a line of {len(line):,} bytes would take {space:,} bytes of memory")
        with _ONE_LARGE_LINE:
            self._take(line)

    def _take(self, line: bytes) -> None:
        for kind, action in parsed(line).items():
            if (take := self._TAKEN.get(kind)) is not None:
                if not isinstance(action, dict):
                    raise ValueError(f"its action {kind} is no object")
                if kind in _FILES and self._only is not None and not self._only(_text(action["path"])):
                    self.adds_others |= kind == "add"
                    continue
                self._hold(_EACH_BYTES + take(self, action))

    def _hold(self, size: int) -> None:
        self.held_bytes += size
        if self.held_bytes > self._most_bytes:
            raise ValueError(
                f"what it and the versions before it say takes more than the {HELD_MAX_BYTES:,} bytes of memory that a"
                " settler has for a table"
            )

    def _add(self, action: dict[str, Any]) -> int:
        path, size = _text(action["path"]), action.get("size")
        about = json.dumps({name: action[name] for name in _OF_A_REMOVAL if action.get(name) is not None})
        is_whole = all(action.get(name) is not None for name in _NEEDED)
        self.adds.append(
            Added(path, bool(action.get("dataChange", True)), is_whole, 0 if size is None else whole(size), about)
        )
        return space_of(path) + len(about)

    def _remove(self, action: dict[str, Any]) -> int:
        self.removes.append(unquote(_text(action["path"])))
        self.removes_data = self.removes_data or bool(action.get("dataChange", True))
        return space_of(self.removes[-1])

    def _cdc(self, action: dict[str, Any]) -> int:
        self.cdc.append(unquote(_text(action["path"])))
        return space_of(self.cdc[-1])

    def _txn(self, action: dict[str, Any]) -> int:
        self.transactions[_text(action["appId"])] = whole(action["version"])
        return space_of(action["appId"])

    def _info(self, action: dict[str, Any]) -> int:
        if self.info is not None:
            return 0
        parts = {name: _flat(action.get(name)) for name in ("operationParameters", "operationMetrics")}
        times = {name: whole(action[name]) for name in _TIMES if action.get(name) is not None}
        self.info = {**_flat(action, _INFO), **times, **{name: part for name, part in parts.items() if name in action}}
        return space_bytes(json.dumps(self.info))

    def _metadata(self, action: dict[str, Any]) -> int:
        if self.metadata is None:
            self.metadata = {"configuration": _flat(action.get("configuration"))}
        return space_bytes(json.dumps(self.metadata))

    def _protocol(self, action: dict[str, Any]) -> int:
        if self.protocol is None:
            features = {name: [*map(_text, action[name])] for name in _FEATURES if action.get(name) is not None}
            versions = {name: whole(action[name]) for name in _VERSIONS if action.get(name) is not None}
            self.protocol = {**versions, **features}
        return space_bytes(json.dumps(self.protocol))

    def _domain(self, action: dict[str, Any]) -> int:
        self.domains.append(_text(action["domain"]))
        return space_of(self.domains[-1])

    _TAKEN: Final = {
        "add": _add,
        "remove": _remove,
        "cdc": _cdc,
        "txn": _txn,
        "commitInfo": _info,
        "metaData": _metadata,
        "protocol": _protocol,
        "domainMetadata": _domain,
    }


def is_on(properties: Mapping[str, object], name: str) -> bool:
    """Return whether a table's properties switch something on: Delta reads `true` in any case."""
    return str(properties.get(name)).lower() == "true"


def first_line(body: bytes | Iterable[bytes]) -> bytes:
    """Return the first line of a commit, as a whole or in blocks."""
    return next(_lines([body] if isinstance(body, bytes) else body), b"")


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > LINE_MAX_BYTES:
            raise ValueError(f"a line has more than {LINE_MAX_BYTES:,} bytes")
    yield rest


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:_SHOWN_MAX]!r} is no text")  # noqa: TRY004 - as for all that is no commit
    return value


def _flat(fields: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the fields (only those of `names`, if given) whose values are neither lists nor objects."""
    values = fields if isinstance(fields, dict) else {}
    names = values if names is None else names
    return {name: values[name] for name in names if name in values and not isinstance(values[name], (dict, list))}


def _whole(text: object) -> int | None:
    return int(str(text)) if _DIGITS.fullmatch(str(text)) else None
