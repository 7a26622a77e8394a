"""Access to the snapshots of a prefix for the commands: errors as problems, keys and values as text."""

from __future__ import annotations

import base64
import binascii
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from safewriter.snapshots.errors import (
    ConfigValidationError,
    PublishConflictError,
    PublishCurrentError,
    ReaderStateError,
    SnapshotError,
)
from safewriter.snapshots.read.source import Source
from soal.console.problem import EXIT_TRY_AGAIN, Failure, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safewriter.snapshots.format.encoding import Key, KeyEncoding
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.read.reader import SnapshotReader
    from soal.s3_command import Call

_NEEDED: Final = ("cel_expr_python", "numpy", "pandas", "pyarrow", "xxhash")
Form = Literal["text", "hex", "base64"]
_TRUTHS: Final = {"true": True, "false": False}
_TYPES: Final[dict[str, Callable[[str], object]]] = {
    "int": int,
    "uint": int,
    "double": float,
    "bool": lambda text: _TRUTHS[text.lower()],
    "bytes": str.encode,
    "string": str,
}


def source_of(prefix: str, call: Call) -> Source:
    """Open a prefix. Raises `Problem` if it is malformed, or the S3 cannot be used."""
    try:
        return Source(prefix, call.target.store)
    except ConfigValidationError as error:
        raise Problem(str(error), todo="give the prefix as s3://bucket/prefix") from error


def reader_of(prefix: str, call: Call, ref: str | None) -> SnapshotReader:
    """Open a snapshot, by default the current one. Raises as `source_of` and `SnapshotReader`."""
    from safewriter.snapshots.read.reader import SnapshotReader  # late, as the commands import what they need

    return SnapshotReader(prefix, open_store=source_of(prefix, call).open_store, manifest_ref=ref)


@contextmanager
def snapshot_errors_as_problems() -> Iterator[None]:
    """Turn an exception of `safewriter.snapshots` into a `Problem`."""
    try:
        yield
    except ConfigValidationError as error:
        raise Problem(str(error), todo="correct the options") from error
    except (PublishConflictError, PublishCurrentError) as error:
        todo = "see which one is current with: soal snapshot history"
        raise Problem(str(error), todo=todo, exit_code=EXIT_TRY_AGAIN) from error
    except ReaderStateError as error:
        todo = "check the prefix, that a snapshot was published there, and the room on this disk"
        raise Failure(str(error), todo=todo) from error
    except SnapshotError as error:
        todo = "see what is there with: soal snapshot history"
        raise Failure(str(error), todo=todo) from error
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise Problem(
            f"snapshots need the package {error.name}", todo="install it with: pip install 'soal[snapshots]'"
        ) from error


def key_of(text: str, encoding: KeyEncoding, *, is_hex: bool) -> Key:
    """Parse a key for the snapshot's encoding. Raises `Problem`."""
    if is_hex:
        if encoding.limit is not None:
            raise Problem("the keys of this snapshot are integers", todo="leave --hex-key out")
        try:
            return bytes.fromhex(text)
        except ValueError as error:
            raise Problem(
                f"the key {text!r} is not hexadecimal: {error}", todo="give two digits for each byte"
            ) from None
    if encoding.limit is None:
        return text
    try:
        return int(text)
    except ValueError:
        raise Problem(
            f"the key {text!r} is not an integer, as this snapshot's keys are", todo="give an integer"
        ) from None


def shown_key(key: Key) -> int | str:
    """Return a key as reports have it: bytes in hexadecimal digits."""
    return key.hex() if isinstance(key, bytes) else key


def context_of(pairs: Iterable[str], manifest: Manifest) -> dict[str, object] | None:
    """Parse `NAME=VALUE` pairs of the sharding rule's other columns, with the rule's types."""
    types: dict[str, str] = manifest.sharding.get("cel_columns") or {}
    context: dict[str, object] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or name not in types:
            columns = ", ".join(sorted(types)) or "none"
            raise Problem(
                f"--context {pair}: not NAME=VALUE of a column that decides on the shard", todo=f"there are: {columns}"
            )
        try:
            context[name] = _TYPES[types[name]](value)
        except (KeyError, ValueError):
            raise Problem(f"--context {pair}: {name} is of type {types[name]}", todo="correct the value") from None
    return context or None


def text_of(value: bytes, form: Form) -> str:
    """Return a value as text, hexadecimal digits, or base64. Raises `Problem` if text is wanted of other bytes."""
    if form == "hex":
        return binascii.hexlify(value).decode()
    if form == "base64":
        return base64.b64encode(value).decode()
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Failure("the value is not text", todo="give --as hex, or --as base64") from None
