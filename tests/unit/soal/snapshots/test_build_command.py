"""`soal snapshot build` turns its options into values and sharding rule, and prints Java's output safely."""

from __future__ import annotations

import subprocess
import sys

import pytest

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.sharding import ShardingSpec, cel_sharding, cel_sharding_by_columns
from safewriter.snapshots.write.values import binary_col, json_cols
from soal.console.output import Output
from soal.snapshots.build_command import heard, sharding_of, value_spec_of


def test_values_are_one_column_or_json() -> None:
    """Values are one column or JSON, by default of all columns except the key; not both."""
    assert value_spec_of("v", []) == binary_col("v")
    assert value_spec_of(None, ["b", "a"]) == json_cols(["b", "a"])
    assert value_spec_of(None, []) == json_cols()
    with pytest.raises(ConfigValidationError, match="two kinds of values"):
        value_spec_of("v", ["a"])


def test_a_rule_is_a_hash_or_an_expression() -> None:
    """A rule is a hash or an expression with typed columns."""
    assert sharding_of(None, None, [], infer_routing_values=False) == ShardingSpec()
    assert sharding_of(5, None, [], infer_routing_values=False) == ShardingSpec(max_keys_per_shard=5)
    given = sharding_of(None, "key % 4", ["key=int"], infer_routing_values=False)
    assert given == cel_sharding("key % 4", {"key": "int"})
    inferred = sharding_of(None, "region", ["region=string"], infer_routing_values=True)
    assert inferred == cel_sharding_by_columns("region")
    with pytest.raises(ConfigValidationError, match="is not NAME=TYPE"):
        sharding_of(None, "key % 4", ["key"], infer_routing_values=False)


def test_what_java_prints_passes_the_console(capfd: pytest.CaptureFixture[str]) -> None:
    """Java's output, which may quote rows, is printed with a prefix and escaped control characters."""
    said = b"\x1b]52;c;aGk=\x07\nsoal: all is well\rsoal: x\n\xff" + b"y" * 100_000
    with heard(Output(as_json=False).talk) as pipe:
        subprocess.run(
            [sys.executable, "-c", f"import os; os.write(1, {said[:60]!r}); os.write(2, {said[60:]!r})"],
            stdout=pipe,
            stderr=pipe,
            check=True,
        )
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("| \\x1b]52;c;aGk=\\x07\n| soal: all is well\n| soal: x\n| \ufffdyyy")
    assert all(line.startswith("| ") for line in err.splitlines())
    assert err.count("y") == 100_000
