"""The two outputs of a command.

Views go to stdout as text or JSON; remarks, problems and progress go to stderr, so that stdout can be piped.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from rich.text import Text

from soal.console.screen import Screen
from soal.console.visible import json_visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from soal.console.problem import Problem
    from soal.console.view import View

_PIPE_WIDTH: Final = 160


class Output:
    """Prints views, as JSON with `as_json`. `talk` is a console on stderr.

    Rich decides about colours: only on a terminal, and never with NO_COLOR.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.talk: Console = Screen(stderr=True)
        self._data = Screen()
        if not self._data.is_terminal:
            self._data = Screen(width=_PIPE_WIDTH)

    def show(self, view: View) -> None:
        """Print the only view of a command."""
        self._put(view, indent=2)

    def stream(self, view: View) -> None:
        """Print one of many views immediately; as JSON it is one line."""
        self._put(view, indent=None)

    def remark(self, text: str) -> None:
        """Print a remark to stderr."""
        _print(self.talk, Text(text))

    def problem(self, problem: Problem) -> None:
        """Print why the command ends, and what to do."""
        _print(self.talk, Text.assemble(("soal: ", "bold red"), str(problem)))
        _print(self.talk, Text(f"  To do: {problem.todo}"))

    def _put(self, view: View, *, indent: int | None) -> None:
        if self._as_json:
            sys.stdout.write(json_visible(json.dumps(view.document, indent=indent, ensure_ascii=False)) + "\n")
            sys.stdout.flush()
        else:
            for part in view.parts:
                _print(self._data, part)


def _print(console: Console, part: RenderableType) -> None:
    console.print(part, soft_wrap=isinstance(part, Text))
