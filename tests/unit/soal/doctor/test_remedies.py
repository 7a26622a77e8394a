"""Every AWS CLI command in the doctor's source, even if no test makes its finding."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import botocore.session
import pytest
from botocore import xform_name

from tests.support.aws_command import commands, complaint
from tests.support.cloud import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = sorted((ROOT / "soal/doctor").glob("*.py"))


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            yield f"{path.name}:{getattr(node, 'lineno', 0)}", node


NODES = tuple(nodes())
CALLS = {
    where: node
    for where, node in NODES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "command"
}
PARTS = {id(part) for _, node in NODES if isinstance(node, ast.JoinedStr) for part in node.values}


def text(node: ast.AST) -> str:
    """Return a string with a word for each expression; `option` is an option with its value."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "--timeout 900" if ast.unparse(node.value) == "option" else "given"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


TEXTS = {where: text(node) for where, node in NODES if id(node) not in PARTS and text(node).startswith("aws ")}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_each_call_names_an_operation_and_its_options(call: ast.Call) -> None:
    """The model knows each operation and option; the findings' tests cover required options from mappings."""
    service, *operations = (
        each.value for argument in call.args for each in ast.walk(argument) if isinstance(each, ast.Constant)
    )
    model = botocore.session.get_session().get_service_model(str(service).removesuffix("api"))
    named = {xform_name(name, "-"): name for name in model.operation_names}
    given = {keyword.arg for keyword in call.keywords if keyword.arg} - {"query"}
    known = [each for each in operations if each in named]
    if not any(isinstance(argument, ast.Name) for argument in call.args):
        assert known == operations
    for operation in known:
        shape = model.operation_model(named[str(operation)]).input_shape
        names = () if shape is None else shape.members
        options = {"notification_endpoint" if name == "Endpoint" else xform_name(name) for name in names}
        assert given <= options


@pytest.mark.parametrize("command", TEXTS.values(), ids=TEXTS.keys())
def test_each_text_is_a_command(command: str) -> None:
    """The AWS CLI accepts each command's operation, options and values, so that it can be pasted."""
    assert [complaint(one) for one in commands(command)] == [None]


def test_the_source_has_commands_of_both_kinds() -> None:
    """The source contains both kinds of commands, so that these tests examine something."""
    assert len(CALLS) > 15
    assert len(TEXTS) >= 5
