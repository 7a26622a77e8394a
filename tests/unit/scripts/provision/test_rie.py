"""Set-up picks the runtime interface emulator's binary for this machine's architecture, or names the architecture."""

from __future__ import annotations

import pytest

from scripts.provision.rie import binary_name
from soal.console.problem import Failure


@pytest.mark.parametrize(
    ("machine", "name"),
    [("x86_64", "aws-lambda-rie-x86_64"), ("AMD64", "aws-lambda-rie-x86_64"), ("aarch64", "aws-lambda-rie-arm64")],
)
def test_the_binary_is_that_of_the_machine(machine: str, name: str) -> None:
    """Every name of Lambda's two architectures maps to a binary."""
    assert binary_name(machine) == name


def test_a_machine_without_emulator_is_told() -> None:
    """For another architecture the error names it."""
    with pytest.raises(Failure, match="riscv64"):
        binary_name("riscv64")
