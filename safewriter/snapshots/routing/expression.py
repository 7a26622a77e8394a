"""A CEL expression over the columns of a row. Its result is the row's token: its shard's number or routing value.

CEL is Google's Common Expression Language, here by its C++ library, which shardyfusion's readers also use. Only a build
needs numpy and pyarrow, so only the functions that it calls import them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.bounds import short
from safewriter.snapshots.errors import (
    ConfigValidationError,
    KeyRangeError,
    MissingPackageError,
    ShardAssignmentError,
)
from safewriter.snapshots.routing.hashing import digest, remainders
from safewriter.snapshots.sharding import CelType, check_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.sharding import RoutingValue

__all__ = ["KEY_VARIABLE", "CelExpression", "EvaluationError", "Tokens"]

KEY_VARIABLE: Final = "key"
"""The variable for the key column, whatever the column's name."""

_TEXT_MAX: Final = 16_384
_WORK_MAX: Final = 10_000
_MACRO: Final = re.compile(r"\b(all|exists|exists_one|filter|map)\b")
_GROWING: Final = re.compile(r"[,+]")
_MATCHES: Final = re.compile(r"""\bmatches\b(?!["'])""")
_PLAIN: Final = re.compile(
    r"""matches\s*\(\s*("[^"\\{\n]*"|'[^'\\{\n]*'|[rR]"(?:[^"\\{\n]|\\[^pP"\n])*"|[rR]'(?:[^'\\{\n]|\\[^pP'\n])*')\s*\)"""
)
"""A literal pattern without counted repetitions and Unicode classes."""
_PATTERNS_MAX: Final = 200
"""Letters of all patterns together: the library compiles each pattern at each call, in 20 microseconds a letter."""

_HASHED: Final = re.compile(r"\s*shard_hash\s*\((?P<argument>.*)\)\s*%\s*(?P<shards>[1-9][0-9]*)[uU]\s*", re.DOTALL)
_PYTHON: Final[dict[CelType, type]] = {
    CelType.INT: int,
    CelType.UINT: int,
    CelType.STRING: str,
    CelType.BYTES: bytearray,
}
_HASHABLE: Final = (CelType.INT, CelType.UINT, CelType.STRING, CelType.BYTES)


class EvaluationError(ValueError):
    """The expression has no value for a row. The message is CEL's."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of rows: `values` has each token at least once, and row `i` has `values[group[i]]`.

    Row `first[group[i]]` is the first row of that group.
    """

    values: list[RoutingValue]
    first: NDArray[np.int64]
    group: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled expression. With `shards`, it is the argument of `shard_hash(…) % shards`.

    `variable`: the argument is only this variable, so it needs no evaluation by CEL.
    """

    compiled: Any
    kind: CelType
    error: Any
    shards: int | None = None
    variable: str | None = None

    def value(self, row: Mapping[str, object]) -> RoutingValue:
        column_value: Any = None if self.variable is None else row[self.variable]
        value = self._evaluated(row) if column_value is None else column_value
        if self.shards is None:
            token: RoutingValue = value
            return token
        try:
            return digest(value) % self.shards
        except KeyRangeError as error:
            raise EvaluationError(str(error)) from None

    def _evaluated(self, row: Mapping[str, object]) -> Any:  # noqa: ANN401 - of the type `kind`
        result = self.compiled.eval(data=row)
        value: Any = result.plain_value()
        # The library also returns an error as a text.
        is_of_kind = type(value) is _PYTHON[self.kind]
        if not is_of_kind or (self.kind is CelType.STRING and result.type() == self.error):
            raise EvaluationError(value)
        return bytes(value) if self.kind is CelType.BYTES else value


@dataclass(frozen=True, slots=True)
class CelExpression:
    """One expression. It is compiled at construction; it is pickled as text, and compiled again at unpickling.

    Raises `ConfigValidationError` with CEL's message, `MissingPackageError` without the library.
    """

    text: str
    variables: tuple[tuple[str, CelType], ...]
    kind: CelType = field(init=False, compare=False)
    _program: _Program = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled, kind, error = _compiled(self.text, self.variables)
        program = _Program(compiled, kind, error)
        hashed = _HASHED.fullmatch(self.text)
        if hashed:
            program = self._without_calls(hashed["argument"], int(hashed["shards"])) or program
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "_program", program)

    def __reduce__(self) -> tuple[type[CelExpression], tuple[object, ...]]:
        return CelExpression, (self.text, self.variables)

    @classmethod
    def of(cls, text: str, columns: Mapping[str, str]) -> CelExpression:
        """Compile an expression. Raises `ConfigValidationError`."""
        check_variables(columns)
        return cls(text, tuple(sorted((name, CelType(kind)) for name, kind in columns.items())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expression reads beside the key."""
        return tuple(name for name, _ in self.variables if name != KEY_VARIABLE)

    @property
    def shards(self) -> int | None:
        """The number of shards, if the whole expression is `shard_hash(…) % Nu`."""
        return self._program.shards

    def token(self, row: Mapping[str, object]) -> RoutingValue:
        """Return the token of a row, which maps variables to values. Raises `EvaluationError`."""
        return self._program.value(row)

    def tokens(self, keys: pa.Array, columns: Sequence[pa.Array]) -> Tokens:
        """Return the tokens of rows; `columns` in the order of `self.columns`.

        Raises `KeyRangeError` for a null key, `ShardAssignmentError` for a row without a token.
        """
        import numpy as np
        import pyarrow as pa

        if keys.null_count:
            raise KeyRangeError("a key is null; drop such rows, or give them a key")
        beside = dict(zip(self.columns, columns, strict=True))
        arrays = {name: keys if name == KEY_VARIABLE else beside[name] for name, _ in self.variables}
        for name, array in arrays.items():
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:  # Spark allows such texts, and a reader's keys cannot be such
                raise ShardAssignmentError(f"a row has no shard: its {name} is a text that is not UTF-8") from None
        alone = self._hashed_column(arrays)
        if alone is not None:
            ids, first, group = np.unique(alone, return_index=True, return_inverse=True)
            return Tokens(ids.tolist(), first, group)
        first, group = _groups(list(arrays.values()), len(keys))
        values = zip(*(array.take(first).to_pylist() for array in arrays.values()), strict=True)
        rows = (dict(zip(arrays, row, strict=True)) for row in values)
        tokens = [self._token_of(row, keys, at) for row, at in zip(rows, first.tolist(), strict=True)]
        return Tokens(tokens, first, group)

    def _token_of(self, row: Mapping[str, object], keys: pa.Array, at: int) -> RoutingValue:
        try:
            return self.token(row)
        except EvaluationError as error:
            nulls = "".join(f"; {name} is null" for name, value in row.items() if value is None)
            raise ShardAssignmentError(
                f"the row with key {keys[at].as_py()!r} has no shard: {self.text!r}: {error}{nulls}"
            ) from None

    def _without_calls(self, argument: str, shards: int) -> _Program | None:
        """Return a program that hashes the argument outside of CEL: its version 0.1.3 leaks 80 bytes a call to Python.

        The argument must also compile by itself: then the matched parentheses are those of the call. Else return None.
        """
        try:
            compiled, kind, error = _compiled(argument, self.variables, kinds=_HASHABLE)
        except ConfigValidationError:
            return None
        is_variable = kind is not CelType.UINT and (argument.strip(), kind) in self.variables
        return _Program(compiled, kind, error, shards, argument.strip() if is_variable else None)

    def _hashed_column(self, arrays: Mapping[str, pa.Array]) -> NDArray[np.int64] | None:
        """Return the tokens of all rows if the expression only hashes one column; else None."""
        program = self._program
        column = None if program.variable is None else arrays[program.variable]
        if column is None or column.null_count or program.shards is None:
            return None
        return remainders(column, program.shards)


def _groups(columns: Sequence[pa.Array], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each combination of values, and the number of each row's combination."""
    import numpy as np

    first, group = np.zeros(min(rows, 1), np.int64), np.zeros(rows, np.int64)
    for column in columns:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        combined = group * (len(codes) + 1) + codes
        _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    return first, group


def _compiled(
    text: str, variables: Sequence[tuple[str, CelType]], kinds: Sequence[CelType] = _HASHABLE[:3]
) -> tuple[Any, CelType, Any]:
    """Return the compiled expression, the type of its result, and CEL's type of errors."""
    _check_work(text)
    cel = _library()
    types = {kind: getattr(cel.Type, kind.name) for kind in CelType}
    hashing = cel.FunctionDecl(
        "shard_hash",
        [cel.Overload(f"shard_hash_{kind}", cel.Type.UINT, [types[kind]], impl=_shard_hash) for kind in _HASHABLE],
    )
    try:
        environment = cel.NewEnv(variables={name: types[kind] for name, kind in variables}, functions=[hashing])
        compiled = environment.compile(text)
    except (RuntimeError, TypeError) as error:  # TypeError: a lone surrogate is no text to the library
        raise ConfigValidationError(f"the expression {text!r} is none: {error}") from None
    kind = next((kind for kind in kinds if compiled.return_type() == types[kind]), None)
    if kind is None:
        raise ConfigValidationError(
            f"the expression {text!r} gives {compiled.return_type().name().lower()}; it must give a shard's number"
            " (int, uint) or a routing value (int, uint, string). int(…) and string(…) convert"
        )
    return compiled, kind, cel.Type.ERROR


def _check_work(text: str) -> None:
    """Refuse an expression that may take long or grow large: the library bounds its depth, but not its work.

    Only macros repeat. Each macro multiplies work and size at most by the number of written elements, which is bounded
    by the number of commas and plus signs.
    """
    if len(text) <= _TEXT_MAX:
        macros = len(_MACRO.findall(text))
        _check_patterns(text, macros)
        if (len(_GROWING.findall(text)) + 1) ** macros <= _WORK_MAX:
            return
    raise ConfigValidationError(
        f"the expression {short(text)} may take too long: it has {len(text):,} letters of {_TEXT_MAX:,}, or too"
        " many macros (all, exists, exists_one, filter, map). Write `key in [...]` instead of macros, or make a column"
        " of it"
    )


def _check_patterns(text: str, macros: int) -> None:
    """Refuse patterns that are computed or may take long: a short one may expand to millions of letters."""
    patterns = [_PLAIN.match(text, call.start()) for call in _MATCHES.finditer(text)]
    if not patterns:
        return
    letters = sum(len(pattern[1]) if pattern is not None else _TEXT_MAX for pattern in patterns)
    if macros or letters > _PATTERNS_MAX:
        raise ConfigValidationError(
            f"the expression {short(text)} may take too long: matches(…) needs a pattern that is written there as one"
            f" text, without {{}}, \\p and \\P, of {_PATTERNS_MAX} letters in all, and no macro beside it. Take"
            " startsWith, endsWith or contains, or make a column of it"
        )


def _shard_hash(value: Key) -> int:
    return digest(value)


def _library() -> Any:  # noqa: ANN401 - it has no types
    try:
        from cel_expr_python import cel
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "a rule in CEL needs the package cel-expr-python: install soal[snapshots], or derive an image with"
            " requirements/snapshots.txt (image/derived)"
        ) from error
    return cel
