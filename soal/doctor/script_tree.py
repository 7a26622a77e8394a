"""A script's syntax tree: the nodes that Python would run, the names and texts in them, and findings about its lines.

No recursion: a generated script may have chains of a thousand calls, which Python can run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

UNKNOWN: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Replaces text that is known only at run time."""
_CATCH_IMPORTS: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Node:
    """`is_optional`: the script continues if an import in this statement fails."""

    node: ast.AST
    is_optional: bool = False


def nodes_of(tree: ast.AST) -> Iterator[Node]:
    """Yield the nodes in source order, without docstrings and code under TYPE_CHECKING."""
    stack = [Node(tree)]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(_children(node))))


def _children(parent: Node) -> Iterator[Node]:
    node, is_optional = parent.node, parent.is_optional
    skipped: set[ast.AST] = set()
    caught: set[ast.AST] = set()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        skipped = {node.value}
    elif isinstance(node, ast.If):
        skipped = set(_never_run(node))
    elif isinstance(node, ast.Try | ast.TryStar | ast.With) and _goes_on(node):
        caught = set(node.body)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        is_optional = False  # the body may run outside the `try`
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield Node(child, is_optional or child in caught)


def _never_run(node: ast.If) -> Sequence[ast.AST]:
    test = node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and name_of(test.operand) == "TYPE_CHECKING":
        return node.orelse
    return node.body if name_of(test) == "TYPE_CHECKING" else ()


def _goes_on(block: ast.Try | ast.TryStar | ast.With) -> bool:
    """Return whether the script continues after a failed import in a block; the first matching handler decides."""
    if isinstance(block, ast.With):
        calls = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
        return any(name_of(call.func) == "suppress" and _catch(call.args) for call in calls)
    for handler in block.handlers:
        if handler.type is None or _catch(handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]):
            return not _ends(handler.body[-1])
    return False


def _catch(types: Iterable[ast.expr]) -> bool:
    return any(name_of(type_) in _CATCH_IMPORTS for type_ in types)


def _ends(statement: ast.stmt) -> bool:
    """Return whether a statement ends the script, judged by the statement alone."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return name_of(statement.value.func) in ("exit", "_exit")
    return isinstance(statement, ast.Raise)


def calls(nodes: Iterable[Node]) -> Iterator[ast.Call]:
    """Yield the calls among the nodes."""
    return (entry.node for entry in nodes if isinstance(entry.node, ast.Call))


def name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name; an empty string for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def chain(call: ast.Call) -> set[str]:
    """Return all names in a call's chain: frame, write, format and save for `frame.write.format("x").save()`."""
    names, node = set(), call.func
    while True:
        names.add(name_of(node))
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return names


def line_of(node: ast.Call | ast.Attribute | ast.Name) -> int:
    """Return the line of the name that is called or used, not the first line of a long chain."""
    name = node.func if isinstance(node, ast.Call) else node
    return (name.end_lineno if isinstance(name, ast.Attribute) else None) or node.lineno


def text_of(node: ast.AST) -> str:
    """Return the text of a constant, or UNKNOWN."""
    return str(node.value) if isinstance(node, ast.Constant) else UNKNOWN


def texts(nodes: Iterable[Node]) -> Iterator[tuple[int, str]]:
    """Yield each text with its line. An f-string or a sum of strings is one text."""
    seen: set[ast.AST] = set()
    for node in (entry.node for entry in nodes):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and node not in seen:
            parts = list(_parts(node, seen))
            if parts != [UNKNOWN]:
                yield node.lineno, "".join(parts)


def _parts(node: ast.expr, seen: set[ast.AST]) -> Iterator[str]:
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.JoinedStr):
            stack.extend(reversed(part.values))
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
            stack.extend((part.right, part.left))
        else:
            yield part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else UNKNOWN
            if not isinstance(part, ast.Constant):
                continue  # it may contain other texts
        seen.add(part)


@dataclass(frozen=True, slots=True)
class Line:
    """A finding about a line. `variants`: the variants that have what the line needs and this image lacks."""

    number: int
    finding: Finding
    variants: tuple[str, ...] = ()

    def finding_in(self, name: str) -> Finding:
        """Return the finding with its place, `name:number`."""
        return Finding(f"{name}:{self.number}", self.finding.status, self.finding.detail, self.finding.remedy)


def warn(number: int, detail: str, remedy: str, variants: Sequence[str] = ()) -> Line:
    """Return a line that the image ignores, or that the script's author should know about."""
    return Line(number, Finding("", "warn", detail, remedy), tuple(variants))


def fail(number: int, detail: str, remedy: str, variants: Sequence[str] = ()) -> Line:
    """Return a line that will fail."""
    return Line(number, Finding("", "fail", detail, remedy), tuple(variants))
