"""The generator of Python mutants removes or blurs each decision of a module, and spares texts, types and names."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.mutants.changes import mutants


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(ast.parse(dedent(source)))]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("if a == b: raise E", ["a == b -> False", "a == b -> True"]),
        ("if not a: return", ["not a -> False", "not a -> True"]),
        ("if a < b: return", ["a < b -> False", "a < b -> True", "a < b -> a <= b"]),
        ("while a: b = 0", ["a -> False", "0 -> 1"]),
        ("x = a and b or c", ["a and b or c -> c", "a and b or c -> a and b", "a and b -> b", "a and b -> a"]),
        ("x = [a for a in b if a]", ["a -> False", "a -> True"]),
        ("x = a == b", ["a == b -> a != b"]),
        ("x = a in (b, c)", ["a in (b, c) -> a not in (b, c)", "(b, c) -> without b", "(b, c) -> without c"]),
        ("x = min(a, b) + c", ["min(a, b) + c -> min(a, b) - c", "min -> max"]),
        ("a(b, c=d)", ["a(b, c=d) -> pass", "a(b, c=d) -> without c"]),
        ("self.a = b", ["self.a = b -> pass"]),
        ("return a", ["return a -> return None"]),
        (
            "try: a = b\n    except (C, D): a = c",
            ["except (C, D) -> raise", "(C, D) -> without C", "(C, D) -> without D"],
        ),
    ],
)
def test_each_decision_is_left_out_and_blurred(statement: str, expected: list[str]) -> None:
    """A condition never or always holds, an operand, an argument or a statement is missing, an order is off by one."""
    assert changes(f"def f():\n    {statement}") == expected


def test_what_returns_a_truth_returns_both() -> None:
    """A mutant that returns None would be the same as False."""
    assert changes("def f() -> bool:\n    return a") == ["return a -> return True", "return a -> return False"]


@pytest.mark.parametrize(
    "source",
    [
        "_log.warning('text', a, exc_info=True)",
        "raise_later = f'{a or b}'",
        "x: Final[dict[str, A | B]] = a",
        "if TYPE_CHECKING:\n        import a",
    ],
)
def test_texts_logging_and_types_are_left_alone(source: str) -> None:
    """They decide nothing, so their mutants would survive every test."""
    assert changes(f"def f():\n    {source}") == []


def test_a_number_with_a_name_of_its_own_is_left_alone() -> None:
    """A waiting time is policy."""
    assert changes("_PATIENCE_S = 30") == []


def test_the_tree_is_the_mutant_s_while_it_is_yielded_and_as_before_afterwards() -> None:
    """The caller compiles one mutant after the other from one tree."""
    tree = ast.parse("def f(a):\n    if a:\n        g(a)\n")
    before = ast.unparse(tree)

    seen = [(mutant.function, mutant.line, ast.unparse(tree)) for mutant in mutants(tree)]

    assert seen == [
        ("f", 2, "def f(a):\n    if False:\n        g(a)"),
        ("f", 2, "def f(a):\n    if True:\n        g(a)"),
        ("f", 3, "def f(a):\n    if a:\n        pass"),
    ]
    assert ast.unparse(tree) == before
