"""Expressions, compared with the CEL library itself."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pyarrow as pa
import pytest
import xxhash
from cel_expr_python import cel

from safewriter.snapshots.errors import (
    ConfigValidationError,
    KeyRangeError,
    MissingPackageError,
    ShardAssignmentError,
)
from safewriter.snapshots.routing.expression import CelExpression, EvaluationError
from safewriter.snapshots.sharding import CelType

TYPES = {"key": "int", "region": "string", "tier": "int", "code": "bytes", "rate": "double", "vip": "bool"}
ROWS: list[dict[str, Any]] = [
    {
        "key": number * 7919 % 1000 - 300,
        "region": ("eu", "us", "", "日本")[number % 4],
        "tier": number % 3,
        "code": bytes([number % 256, 255]),
        "rate": number / 8,
        "vip": number % 5 == 0,
    }
    for number in range(600)
]


def digest(value: int | str | bytes | bytearray) -> int:
    if isinstance(value, int):
        return xxhash.xxh3_64_intdigest(value.to_bytes(8, "little", signed=True))
    return xxhash.xxh3_64_intdigest(value.encode() if isinstance(value, str) else bytes(value))


def by_the_library(text: str, columns: dict[str, str], rows: list[dict[str, Any]]) -> list[Any]:
    """Return the library's own result, with a `shard_hash` of xxhash alone."""
    overloads = [
        cel.Overload(f"h_{kind}", cel.Type.UINT, [getattr(cel.Type, kind.upper())], impl=digest)
        for kind in ("int", "uint", "string", "bytes")
    ]
    environment = cel.NewEnv(
        variables={name: getattr(cel.Type, kind.upper()) for name, kind in columns.items()},
        functions=[cel.FunctionDecl("shard_hash", overloads)],
    )
    compiled = environment.compile(text)
    return [compiled.eval(data={name: row[name] for name in columns}).plain_value() for row in rows]


def batch(names: list[str], rows: list[dict[str, Any]]) -> list[pa.Array]:
    kinds = {"int": pa.int64(), "string": pa.string(), "bytes": pa.binary(), "double": pa.float64(), "bool": pa.bool_()}
    return [pa.array([row[name] for row in rows], kinds[TYPES[name]]) for name in names]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("key", ["key"]),
        ("region", ["region"]),
        ("key % 4", ["key"]),
        ("shard_hash(key) % 4u", ["key"]),
        (" shard_hash ( region )%7u ", ["region"]),
        ("shard_hash(code) % 5u", ["code"]),
        ("shard_hash(uint(tier)) % 5u", ["tier"]),
        ("shard_hash(bytes(region)) % 5u", ["region"]),
        ("shard_hash(string(rate)) % 5u", ["rate"]),
        ('shard_hash(region + ":" + string(tier)) % 8u', ["region", "tier"]),
        ('shard_hash(region + ")") % 8u', ["region"]),
        ("shard_hash(key) + shard_hash(tier) % 4u", ["key", "tier"]),
        ("shard_hash(shard_hash(key) % 9u) % 4u", ["key"]),
        ("(shard_hash(key)) % (2u + 2u)", ["key"]),
        ("vip ? 'vip' : (rate > 20.0 ? 'dear' : region)", ["vip", "rate", "region"]),
        ("key < 0 ? 0 : (code == b'\\x05\\xff' ? 1 : 2)", ["key", "code"]),
    ],
)
def test_many_rows_give_what_the_library_gives_for_each(text: str, names: list[str]) -> None:
    """This holds for hashing outside of CEL, and for any number of repeated values."""
    columns = {name: TYPES[name] for name in names}
    expression = CelExpression.of(text, columns)
    wanted = by_the_library(text, columns, ROWS)

    tokens = expression.tokens(batch(["key"], ROWS)[0], batch(list(expression.columns), ROWS))

    assert [tokens.values[place] for place in tokens.group] == wanted
    assert [tokens.values[place] for place in tokens.group[tokens.first]] == tokens.values
    assert [expression.token({name: row[name] for name in names}) for row in ROWS] == wanted


def test_no_rows_give_nothing() -> None:
    """A partition may be empty."""
    tokens = CelExpression.of("tier", {"tier": "int"}).tokens(pa.array([], pa.int64()), [pa.array([], pa.int64())])
    assert (tokens.values, tokens.group.tolist()) == ([], [])


def test_equal_rows_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """CEL takes microseconds for each row, and sharding columns have few distinct values."""
    asked: list[object] = []
    token = CelExpression.token

    def counted(self: CelExpression, row: Any) -> Any:
        asked.append(row)
        return token(self, row)

    monkeypatch.setattr(CelExpression, "token", counted)
    expression = CelExpression.of("region + string(tier)", {"region": "string", "tier": "int"})
    expression.tokens(batch(["key"], ROWS)[0], batch(["region", "tier"], ROWS))
    assert len(asked) == 12


def test_it_travels_as_text_and_is_compiled_where_it_arrives() -> None:
    """A compiled expression cannot be pickled."""
    expression = CelExpression.of("shard_hash(key) % 4u", {"key": "int"})
    arrived = pickle.loads(pickle.dumps(expression))  # noqa: S301 - our own
    assert arrived == expression
    assert arrived.token({"key": 42}) == 15395265915043915720 % 4
    assert len(pickle.dumps(expression)) < 500


def test_the_order_of_its_variables_makes_no_difference() -> None:
    """A manifest does not keep the order."""
    one = CelExpression.of("tier", {"tier": "int", "region": "string"})
    assert one == CelExpression.of("tier", {"region": "string", "tier": "int"})
    assert one.columns == ("region", "tier")


@pytest.mark.parametrize("text", ["shard_hash(key) % 4u", "shard_hash(string(key)) % 4u"])
def test_the_usual_hash_does_not_call_back_from_cel(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each such call leaks memory in version 0.1.3 of the library, and executors and readers live long."""
    called: list[object] = []
    monkeypatch.setattr("safewriter.snapshots.routing.expression._shard_hash", called.append)
    expression = CelExpression.of(text, {"key": "int"})
    assert expression.shards == 4
    expression.token({"key": 1})
    assert called == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("key +", "the expression 'key \\+' is none: .*Syntax error"),
        ("nobody", "undeclared reference to 'nobody'"),
        ("key % 4u", "no matching overload for '_%_' applied to '\\(int, uint\\)'"),
        ("rate", "gives double; it must give a shard's number"),
        ("key > 1", "gives bool; "),
        ("null", "gives null; "),
        ("code", "gives bytes; .*string\\(…\\) convert"),
        ("dyn(key)", "gives dyn; "),
        ("shard_hash(rate) % 4u", "no matching overload for 'shard_hash'"),
        ("shard_hash(key) % 0u + nobody", "undeclared reference"),
    ],
)
def test_an_expression_that_is_none_is_refused_with_the_library_s_words(text: str, problem: str) -> None:
    """The library's message shows the position."""
    with pytest.raises(ConfigValidationError, match=f"(?s){problem}"):
        CelExpression.of(text, TYPES)


@pytest.mark.parametrize(
    ("text", "row", "problem"),
    [
        ("region", {"key": 5, "region": None}, "the row with key 5 has no shard: 'region': .*; region is null"),
        ("shard_hash(region) % 4u", {"key": 5, "region": None}, "the row with key 5 .*; region is null"),
        ("{'eu': 'e'}[region]", {"key": 6, "region": "us"}, 'the row with key 6 .* Key not found in map : "us"'),
        ("shard_hash(shard_hash(key)) % 4u", {"key": 0, "region": "us"}, "14374147212387527897 does not fit into 64"),
        ("10 / key", {"key": 0, "region": "us"}, "the row with key 0 .*divide by zero"),
    ],
)
def test_a_row_that_gives_nothing_is_named(text: str, row: dict[str, Any], problem: str) -> None:
    """The library returns errors as texts, which must not become routing values."""
    expression = CelExpression.of(text, {"key": "int", "region": "string"})
    with pytest.raises(ShardAssignmentError, match=f"(?s){problem}"):
        expression.tokens(*[batch(["key"], [row])[0], batch(["region"], [row])])
    with pytest.raises(EvaluationError):
        expression.token(row)


@pytest.mark.parametrize("text", ["region", "shard_hash(region) % 4u"])
def test_a_text_that_is_not_utf_8_is_refused(text: str) -> None:
    """Spark allows such texts, and no reader could name one."""
    expression = CelExpression(text, (("region", CelType.STRING),))
    regions = pa.array([b"eu", b"\xff"]).view(pa.string())
    with pytest.raises(ShardAssignmentError, match="its region is a text that is not UTF-8"):
        expression.tokens(pa.array([1, 2]), [regions])


def test_a_negative_number_is_no_uint() -> None:
    """Spark has no unsigned columns, so an integer column is accepted, and CEL checks its values."""
    expression = CelExpression.of("shard_hash(number) % 4u", {"number": "uint"})
    assert expression.tokens(pa.array([1]), [pa.array([42])]).values == [digest(42) % 4]
    with pytest.raises(ShardAssignmentError, match=r"the row with key 1 .*can't convert negative int to unsigned"):
        expression.tokens(pa.array([1]), [pa.array([-42])])


def test_a_null_that_is_not_asked_for_does_no_harm() -> None:
    """CEL evaluates only the variables that it needs."""
    expression = CelExpression.of("key < 10 ? 'few' : region", {"key": "int", "region": "string"})
    tokens = expression.tokens(pa.array([1, 20]), [pa.array([None, "eu"])])
    assert [tokens.values[place] for place in tokens.group] == ["few", "eu"]


def test_a_key_without_a_value_is_refused() -> None:
    """It is refused even if the expression does not read it."""
    with pytest.raises(KeyRangeError, match="a key is null"):
        CelExpression.of("tier", {"tier": "int"}).tokens(pa.array([1, None]), [pa.array([1, 2])])


def test_a_machine_without_the_library_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of hashed keys does not need the library."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    with pytest.raises(MissingPackageError, match=r"cel-expr-python: install soal\[snapshots\]"):
        CelExpression("key", (("key", CelType.INT),))
