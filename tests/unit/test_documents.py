"""What the documents show: Python compiles and imports what exists, events are accepted, commands and links work."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handler.request.event import parse_event
from handler.settings import read_settings
from scripts.soal.app import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")])


def blocks(language: str) -> list[tuple[str, str]]:
    """Return (document, text) of every fenced block of a language."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(path.name, text) for path in DOCUMENTS for text in pattern.findall(path.read_text())]


@pytest.mark.parametrize(("document", "text"), blocks("python"))
def test_python_compiles_and_its_imports_exist(document: str, text: str) -> None:
    """A name that an example imports is there."""
    for node in ast.walk(ast.parse(text, document)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, name.name) for name in node.names)


@pytest.mark.parametrize(("document", "text"), blocks("json"))
def test_a_json_block_is_an_event_that_is_accepted(document: str, text: str, tmp_path: Path) -> None:
    """The README's event is one."""
    (tmp_path / "jars").mkdir()
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "soal-checkpoints", "SOAL_HOME": str(tmp_path)})
    assert parse_event(json.loads(text), settings) is not None, document


@pytest.mark.parametrize(("document", "text"), blocks("bash"))
def test_the_commands_exist(document: str, text: str) -> None:
    """Each script is a file that can be run, each `soal` command knows its options."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == [".venv/bin/soal"]:
            path = [word for word in words[1:] if re.fullmatch(r"[a-z]+", word)]
            shown = CliRunner().invoke(app, [*path, "--help"])
            assert shown.exit_code == 0, (document, line)
            assert all(word in shown.output for word in words if word.startswith("--"))
        elif words:
            assert (ROOT / words[0]).stat().st_mode & 0o100, (document, line)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """A relative link names a file of the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_each_threat_names_the_test_of_its_protection() -> None:
    """A row of SECURITY's table without a test would be a promise only."""
    table = (ROOT / "SECURITY.md").read_text().partition("## Threats")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for threat, *_, named in rows:
        path, _, test = named.strip(" `").partition("::")
        functions = [
            node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        assert test in functions, threat
