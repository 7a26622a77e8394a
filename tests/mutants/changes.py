"""The mutants of a module: one small change each, of a kind that removes or blurs a decision.

Not mutated: texts, logging, annotations, decorators, and numbers with a name of their own (a waiting time is policy; a
test only has to notice a wait without end).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Mutant", "mutants"]

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ORDERS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NO_DECISION: Final = {"annotation", "returns", "decorator_list"}
_TEXT_MAX: Final = 160
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `line`: the first line of the statement that a test must run to notice; `at_import`: an import runs
    it.
    """

    function: str
    change: str
    line: int
    at_import: bool


@dataclass(frozen=True, slots=True)
class _Place:
    holder: ast.AST
    node: ast.AST
    field: str
    statement: ast.stmt
    scope: tuple[ast.AST, ...]

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        return next((one for one in reversed(self.scope) if isinstance(one, _FUNCTIONS)), None)

    def mutant(self, change: str) -> Mutant:
        named = [one.name for one in self.scope if isinstance(one, (*_FUNCTIONS, ast.ClassDef))]
        statement = self.node.body[0] if isinstance(self.node, ast.ExceptHandler) else self.statement
        at_import = self.function is None or isinstance(statement, _FUNCTIONS)  # includes a function's defaults
        return Mutant(".".join(named), change, statement.lineno, at_import)


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """Yield every mutant, in a fixed order; meanwhile the tree is the mutant's."""
    for place in [*_places(tree, tree.body, "body", ())]:
        if isinstance(place.node, ast.expr | ast.stmt | ast.ExceptHandler):
            for text, new in _replacements(place):
                with_places = ast.fix_missing_locations(ast.copy_location(new, place.node))
                _put(place, place.node, with_places)
                yield place.mutant(f"{_short(place.node)} -> {text or _short(new)}")
                _put(place, with_places, place.node)


def _put(place: _Place, old: ast.AST, new: ast.AST) -> None:
    held = getattr(place.holder, place.field)
    if isinstance(held, list):
        held[next(index for index, one in enumerate(held) if one is old)] = new
    else:
        setattr(place.holder, place.field, new)


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.ExceptHandler):
        return f"except {ast.unparse(node.type) if node.type else ''}"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def _places(holder: ast.AST, held: object, field: str, scope: tuple[ast.AST, ...]) -> Iterator[_Place]:
    """Walk in source order, skipping nodes that decide nothing."""
    for node in held if isinstance(held, list) else [held]:
        if not isinstance(node, ast.AST) or field in _NO_DECISION or _is_text(node):
            continue
        statement = node if isinstance(node, ast.stmt) else _statement(scope)
        yield _Place(holder, node, field, statement, scope)
        inner = (*scope, node) if isinstance(node, ast.stmt) else scope
        for name, value in ast.iter_fields(node):
            yield from _places(node, value, name, inner)


def _statement(scope: tuple[ast.AST, ...]) -> ast.stmt:
    last = scope[-1]
    assert isinstance(last, ast.stmt)
    return last


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "warnings"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "warnings")))):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


def _replacements(place: _Place) -> Iterator[tuple[str, ast.AST]]:  # noqa: C901, PLR0912 - one case for each kind
    node, holder = place.node, place.holder
    condition = place.field == "ifs" or (isinstance(holder, ast.If | ast.IfExp) and place.field == "test")
    if condition:
        yield "", ast.Constant(value=False)
        yield "", ast.Constant(value=True)
    elif isinstance(holder, ast.While) and place.field == "test":
        yield "", ast.Constant(value=False)
    match node:
        case ast.BoolOp(op=op, values=values):
            for one in values:
                rest = [other for other in values if other is not one]
                yield "", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, compares in enumerate(ops):
                if condition and not isinstance(compares, _ORDERS):  # it would equal never or always
                    continue
                changed = [*ops[:index], _COMPARISONS[type(compares)](), *ops[index + 1 :]]
                yield "", ast.Compare(left, changed, comparators)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not condition:
            yield "", operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            yield "", ast.BinOp(left, _OPERATORS[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield "", ast.Constant(not value)
        case ast.Constant(value=int() | float() as number) if place.function is not None:
            yield "", ast.Constant(number + 1)
        case ast.Name(id=name) if name in _NAMES and place.field == "func":
            yield "", ast.Name(_NAMES[name], ast.Load())
        case ast.Call():
            yield from _calls(node)
        case ast.Set(elts=elements) | ast.Tuple(elts=elements, ctx=ast.Load()) if len(elements) > 1 and _is_choice(
            place
        ):
            for one in elements:
                rest = [other for other in elements if other is not one]
                chosen = ast.Set(rest) if isinstance(node, ast.Set) else ast.Tuple(rest, ast.Load())
                yield f"without {_short(one)}", chosen
        case ast.Dict(keys=keys, values=values) if place.function is None:
            for index, key in enumerate(keys):
                text = "" if key is None else f"without {_short(key)}"
                yield text, ast.Dict(keys[:index] + keys[index + 1 :], values[:index] + values[index + 1 :])
        case ast.ExceptHandler(type=kind, name=name, body=body) if not isinstance(body[-1], ast.Raise):
            yield "raise", ast.ExceptHandler(kind, name, [ast.Raise()])
        case ast.Return(value=ast.expr() as value):
            yield from _returns(place, value)
        case ast.stmt() if _can_go(place):
            yield "", ast.Pass()


def _calls(call: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    for one in call.keywords:
        if one.arg is not None:
            kept = [other for other in call.keywords if other is not one]
            yield f"without {one.arg}", ast.Call(call.func, call.args, kept)
    if isinstance(call.func, ast.Name) and call.func.id == "suppress":
        yield "", ast.Call(call.func, [], [])


def _returns(place: _Place, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(value, ast.Constant):
        return
    returns = place.function.returns if place.function is not None else None
    truth = isinstance(returns, ast.Name) and returns.id == "bool"
    for constant in (True, False) if truth else (None,):
        yield "", ast.Return(ast.Constant(constant))


def _is_choice(place: _Place) -> bool:
    """Whether the node is a set of values to choose from: data, an operand of `in`, or caught types."""
    asked = isinstance(place.holder, ast.Compare) and place.field == "comparators"
    return place.function is None or asked or isinstance(place.holder, ast.ExceptHandler)


def _can_go(place: _Place) -> bool:
    """Whether a test must notice the statement's absence."""
    match place.node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            return place.function is not None
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            return place.function is not None and place.function.name != "__init__"
        case ast.Raise():  # after an `if`, the condition's mutants cover it
            return not isinstance(place.holder, ast.If)
    return False
