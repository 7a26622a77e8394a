"""No untrusted text reaches a terminal as a command, whatever the view."""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import logging
import pkgutil
import re
import types
import typing
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel
from rich.console import Group
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

import soal
from handler.functions import redrive_queue
from soal import app
from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.progress import Counting, JobProgress
from soal.console.screen import Screen
from soal.console.view import columns
from soal.console.visible import VisibleFormatter, json_visible, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from soal.console.view import View

ROOT = Path(__file__).parents[4]
OWN = {"life": "alive", "time_ms": 1}
"""Fields without untrusted text."""
HOSTILE = (
    "a\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[2J\x9b2J\x9d0;x\x9c\x08\x0b\x0c\x7f\u202eb\u2066c\u2028d\u2029\ud800\u200b\ufeff"
    "[link=x]\r\nsoal: all is well\rz"
)
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]")


def filled(hint: Any) -> Any:  # noqa: PLR0911 - a kind of type each
    """Return a value of a type with the hostile text in every string."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return filled(next(one for one in (str, *arguments) if one in arguments and one is not type(None)))
    if origin is typing.Annotated:
        return filled(arguments[0])
    if origin is Literal:
        return arguments[0]
    if origin in (tuple, list, Sequence, frozenset):
        found = [filled(arguments[0])]
        return found if origin is list else frozenset(found) if origin is frozenset else tuple(found)
    if origin in (dict, Mapping):
        return {"cel_expr": HOSTILE, HOSTILE: filled(arguments[1])}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        hints = typing.get_type_hints(hint)
        return hint.model_construct(**{name: filled(hints[name]) for name in hint.model_fields})
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        kind: Any = hint
        return kind(**{one: OWN.get(one) or filled(hints[one]) for one in hints})
    plain = {int: 1, float: 1.0, bool: True, datetime: datetime(2026, 1, 1, tzinfo=UTC), timedelta: timedelta(1)}
    return plain.get(hint, HOSTILE)


def modules() -> list[types.ModuleType]:
    """Return the modules of the command line, except those that show only our own figures."""
    names = [found.name for found in pkgutil.walk_packages(soal.__path__, "soal.")]
    own = re.compile(r"bench|image_size|locks_demo")
    return [importlib.import_module(name) for name in names if own.search(name) is None]


def views() -> list[Callable[[Any], View]]:
    """Return all functions of the command line that return a view."""
    made = [one for module in modules() for one in vars(module).values() if isinstance(one, types.FunctionType)]
    named = {module.__name__ for module in modules()}
    found = {one for one in made if one.__annotations__.get("return") == "View" and one.__module__ in named}
    return sorted(found, key=lambda one: (one.__module__, one.__name__))


def argument(view: Callable[[Any], View]) -> Any:
    """Return a hostile argument for a view, by the type of its parameter."""
    known = [one for module in (*modules(), redrive_queue) for one in vars(module).items() if is_data(one[1])]
    names = {**dict(known), "Sequence": Sequence, "Any": Any}
    return filled(eval(next(iter(view.__annotations__.values())), names))  # noqa: S307 - an annotation of our own


def is_data(value: object) -> bool:
    return isinstance(value, type) and (dataclasses.is_dataclass(value) or issubclass(value, BaseModel))


@pytest.mark.parametrize("view", views(), ids=lambda view: f"{view.__module__}.{view.__name__}")
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_view_lets_a_control_character_through(
    view: Callable[[Any], View], capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    """No view prints a control character, or a line that looks like ours; the JSON is complete all the same."""
    shown = view(argument(view))
    Output(as_json=as_json).show(shown)
    text = capsys.readouterr().out
    assert text
    assert RAW.search(text) is None
    assert not any(line.startswith("soal:") for line in text.splitlines())
    if as_json:
        assert json.loads(text) == json.loads(json.dumps(shown.document))


def test_problems_remarks_and_progress_do_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Problems, remarks and progress escape untrusted names and reasons, and indent their further lines."""
    out = Output(as_json=False)
    out.problem(Problem(HOSTILE, todo=HOSTILE))
    out.remark(HOSTILE)
    out.talk.print(HOSTILE)
    with JobProgress(out.talk, HOSTILE, shows_log=True) as progress:
        progress.line(json.dumps({"message": HOSTILE}))
        progress.line(HOSTILE)
    text = capsys.readouterr().err
    assert RAW.search(text) is None
    assert [line[:7] for line in text.splitlines() if "soal:" in line] == [
        "soal: a",
        *["    soa"] * 4,
        *["| soal:"] * 2,
    ]
    assert "\\x1b]52;c;aGk=" in text
    assert "\\x9b2J" in text
    assert "\\u202eb" in text


def test_a_terminal_gets_the_commands_of_rich_and_no_others() -> None:
    """A terminal gets only rich's escape sequences: colours and the lines of a progress."""
    stream = io.StringIO()
    screen = Screen(file=stream, force_terminal=True, width=200, color_system="standard")
    with Counting(screen, HOSTILE) as counting:
        counting.show(7)
        screen.print(Text(HOSTILE, style="red"))
    sent = stream.getvalue()
    assert "\x1b[31m" in sent
    # The rest without rich's own sequences: colours, and the cursor's moves.
    assert RAW.search(re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]|\r", "", sent)) is None
    assert "\x1b[2J" not in sent


def test_what_is_changed_keeps_its_style_and_its_place_in_a_table() -> None:
    """Changed text keeps its style; a cell's width is that of the changed text, and a newline in it starts no row."""
    stream = io.StringIO()
    screen = Screen(file=stream, width=60)
    for row in ((Text("a\x1b\nb"), Text("c")), ("[bold]d\x9b", "e")):
        table = Table(box=None, show_header=False)
        table.add_row(*row)
        screen.print(table)
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        " a\\x1b  c",
        "     b",
        " [bold]d\\x9b  e",
    ]
    coloured = Screen(file=(shown := io.StringIO()), force_terminal=True, color_system="standard")
    coloured.print(Text.assemble(("a\x1bb", "red"), "c"))
    assert shown.getvalue() == "\x1b[31ma\x1b[0m\\x1b\x1b[31mb\x1b[0mc\n"


class Bare:
    """A renderable that makes its segments itself."""

    def __rich_console__(self, *_: object) -> Iterator[Segment]:
        yield Segment(HOSTILE)


def test_nothing_that_rich_writes_goes_round_it() -> None:
    """Every rich output passes `Screen`, whatever a view consists of."""
    stream = io.StringIO()
    screen = Screen(file=stream)
    for one in (Bare(), Group(Text(HOSTILE), HOSTILE), Panel(HOSTILE, title=HOSTILE), Rule(HOSTILE), [HOSTILE]):
        screen.print(one)
        screen.log(one)
    assert RAW.search(stream.getvalue()) is None


def test_an_error_that_nobody_expected_is_shown_the_same_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error's traceback and a library's log lines are escaped, too."""

    def broken(_called: str) -> None:
        raise ValueError(HOSTILE)

    monkeypatch.setattr(app, "app_of", broken)
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler())
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 1
    assert logging.lastResort is not None
    formatter = logging.lastResort.formatter
    assert isinstance(formatter, VisibleFormatter)
    line = formatter.format(logging.LogRecord("n", logging.WARNING, "p", 1, "lost %s", (HOSTILE,), None))
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "a    b" in formatter.format(logging.LogRecord("n", logging.WARNING, "p", 1, "a%sb", (" " * 80,), None))
    for lines in (line, text.rstrip("\n")):
        assert RAW.search(lines) is None
        assert re.search(r"\n\S", lines) is None


def test_all_consoles_are_screens() -> None:
    """Every console is a `Screen`; another one would bypass the escaping."""
    rooms = ("scripts", "soal", "tests/lab")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py") if path.name != "screen.py"]
    assert sources
    assert [str(path) for path in sources if re.search(r"\bConsole\(", path.read_text())] == []


IGNORABLE = (
    *((0xAD,), (0x34F,), (0x61C,), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F)),
    *((0x202A, 0x202E), (0x2060, 0x206F), (0x3164,), (0xFE00, 0xFE0F), (0xFEFF,), (0xFFA0,), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt)."""


def test_no_character_without_a_picture_is_printed() -> None:
    """Invisible characters (all of Unicode's formats, fillers and tags) are escaped, and no letter or sign is."""
    fillers = "\u2800" + "".join(chr(code) for part in IGNORABLE for code in range(part[0], part[-1] + 1))
    formats = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]
    for one in (*fillers, *formats):
        assert one not in visible(f"a{one}b")
        assert json.loads(json_visible(json.dumps(one, ensure_ascii=False))) == one
        assert one not in json_visible(json.dumps(one, ensure_ascii=False))
    shown = "Zürich, 東京, café ✓ — 1 €\n\t"
    assert visible(shown) == shown


def test_a_control_character_that_rich_would_leave_out_has_its_number() -> None:
    """A control character that rich would drop is shown as its number."""
    screen = Screen(file=(shown := io.StringIO()), width=80)
    table = Table(box=None, show_header=False)
    table.add_row(Text("a\x07b\x08c"), "d\x0be\x0cf\rg")
    screen.print(Text("a\x07b\x08c\x0bd\x0ce\rf"))
    screen.print(table)
    assert shown.getvalue().split() == [r"a\x07b\x08c\x0bd\x0ce\x0df", r"a\x07b\x08c", r"d\x0be\x0cf\x0dg"]


@pytest.mark.parametrize("blank", [" ", "\t", "\xa0", "\u2003", "\u3000", " \t", "\n" + " " * 40])
@pytest.mark.parametrize("soft_wrap", [True, False])
def test_blanks_lead_nothing_to_the_beginning_of_a_line(blank: str, *, soft_wrap: bool) -> None:
    """A run of blanks as wide as the terminal cannot move text to the start of a line."""
    screen = Screen(file=(shown := io.StringIO()), width=40)
    table = Table(box=None, show_header=False)
    table.add_row(f"why{blank * 39}soal: ok")
    screen.print(Text(f"why{blank * 39}soal: ok"), soft_wrap=soft_wrap)
    screen.print(table)
    lines = shown.getvalue().splitlines()
    assert not any(line.startswith(("soal:", " soal:")) for line in lines)
    assert max(len(line.expandtabs()) for line in lines) <= 40


def test_a_long_cell_has_its_beginning_and_its_last_words() -> None:
    """In its narrow column it would fill thousands of lines; an S3 path is shown whole."""
    path, long = "k" * 1100, "where: " + "s" * 10**6 + " do this"
    table = columns("string", "text", "path")
    table.add_row(long, Text(long, style="red"), path)
    shown = Screen(width=100, file=io.StringIO())
    shown.print(table)
    printed = shown.file.getvalue()  # type: ignore[attr-defined]

    assert len(printed) < 10_000
    assert printed.count("k") == len(path)
    assert printed.count("do") == printed.count("this") == 2
