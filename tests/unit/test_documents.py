"""The documentation: the site builds without a warning, examples compile, events, commands and links are valid."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handler.request.job import requested
from handler.settings import read_settings
from infra.context import read_context
from scripts.provision.java import MAJOR
from scripts.reference import PARTS, filled
from tests.support.cloud import IMAGE
from tests.support.command_line import app

ROOT = Path(__file__).parents[2]
README_WORDS_MAX = 700
COLUMNS_MAX = 100
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
THREAT_COLUMNS = ("what could happen", "what stops it", "what stays open", "test")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")])


def blocks(language: str) -> list[tuple[str, str]]:
    """Return (document, text) of every fenced block of a language."""
    pattern = re.compile(rf"^( *)```{language}\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    found = [(path.name, text) for path in DOCUMENTS for _, text in pattern.findall(path.read_text())]
    return [(name, textwrap.dedent(text)) for name, text in found]


@pytest.mark.parametrize(("document", "text"), blocks("python"))
def test_python_compiles_and_its_imports_exist(document: str, text: str) -> None:
    """Python examples compile, and the names that they import exist."""
    for node in ast.walk(ast.parse(text, document)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, name.name) for name in node.names)


def is_of_schedules(text: str) -> bool:
    return all(isinstance(value, dict) and "schedule" in value for value in json.loads(text).values())


@pytest.mark.parametrize("text", [text for _, text in blocks("json") if is_of_schedules(text)])
def test_the_stack_takes_the_schedules_that_are_shown(text: str) -> None:
    """Each is a value of the context key `schedules`."""
    assert read_context({"schedules": text, "image_uri": IMAGE}).schedules


@pytest.mark.parametrize(("document", "text"), [block for block in blocks("json") if not is_of_schedules(block[1])])
def test_a_json_block_is_an_event_that_is_accepted(document: str, text: str, tmp_path: Path) -> None:
    """A JSON block is a valid event, such as the README's; the function declares the turns that the guide shows."""
    (tmp_path / "jars").mkdir()
    (turns,) = (shown for name, shown in blocks("text") if name == "coordination.md" and shown.startswith("{"))
    declared = turns.replace('"script": "', '"script": "s3://scripts/')
    variables = {"SW_CHECKPOINT_BUCKET": "soal-checkpoints", "SOAL_HOME": str(tmp_path), "SOAL_TURNS": declared}
    settings = read_settings(variables)
    assert requested(json.loads(text), settings, "request").job is not None, document


@pytest.mark.slow
@pytest.mark.parametrize(("document", "text"), blocks("bash"))
def test_the_commands_exist(document: str, text: str) -> None:
    """Each script is an executable file, and each `soal` command knows its options."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == [".venv/bin/soal"]:
            if words[1:3] == ["local", "run"]:  # what follows the script is the script's
                words = words[: next(at for at, word in enumerate(words) if word.endswith(".py"))]
            path = list(itertools.takewhile(re.compile("[a-z]+").fullmatch, words[1:]))  # the rest are values
            shown = CliRunner().invoke(app, [*path, "--help"])
            assert shown.exit_code == 0, (document, line)
            assert all(word in shown.output for word in words if word.startswith("--"))
        elif words:
            assert (ROOT / words[0]).stat().st_mode & 0o100, (document, line)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """A relative link leads to a file of the repository, and its anchor to a heading of that file."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose(document)):
        path = document.parent / target if target else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def prose(document: Path) -> str:
    """Return a document without its fenced blocks."""
    fence = re.compile(r"^ *(`{3,}).*?^ *\1`*$", re.MULTILINE | re.DOTALL)
    return fence.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub and MyST give to a document's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_prose_is_wrapped(document: Path) -> None:
    """Lines have at most 100 columns, except table rows, links and code."""
    for line in prose(document).splitlines():
        if len(line) > COLUMNS_MAX and not line.startswith("|"):
            assert " " not in line.strip(" -*.0123456789")[:COLUMNS_MAX], line


def test_the_readme_is_short() -> None:
    """The README is short: everything else is in docs/."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS_MAX


def test_the_readme_names_the_versions_that_are_pinned() -> None:
    """Spark, Delta and Iceberg are those of the package and of the image's jars, Python the oldest that is accepted."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    jars = (ROOT / "image/jars/jars.sha256").read_text(encoding="utf-8")

    def pinned(text: str, pattern: str) -> str:
        (version,) = set(re.findall(pattern, text))
        return str(version)

    spark, python = pinned(project, r'"pyspark==([\d.]+)"'), pinned(project, r'requires-python = ">=([\d.]+)"')
    delta = pinned(jars, r"delta-spark_4\.1_2\.13-([\d.]+)\.jar")
    iceberg = pinned(jars, r"iceberg-spark-runtime-4\.1_2\.13-([\d.]+)\.jar")
    assert f"Spark {spark}, Delta {delta}, Iceberg {iceberg}, Java {MAJOR}, Python {python} or newer" in readme


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the built site, and what the build has said."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-P", "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run([*build, "docs", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    return folder, done.stderr


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site: tuple[Path, str]) -> None:
    """All references resolve, each page is in the contents, and each name of the API exists."""
    assert site[1] == ""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt install chromium)")
def test_a_browser_draws_each_diagram(site: tuple[Path, str], tmp_path: Path) -> None:
    """Each diagram of a page is a picture, and none says that its text has an error."""
    pages = [page for page in ROOT.glob("docs/**/*.md") if "```mermaid" in page.read_text(encoding="utf-8")]
    assert pages
    for page in pages:
        built = (site[0] / page.relative_to(ROOT / "docs")).with_suffix(".html")
        words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        dump = [str(BROWSER), *words, "--virtual-time-budget=30000", "--dump-dom", built.as_uri()]
        seen = subprocess.run(dump, capture_output=True, text=True, check=True, timeout=120).stdout
        drawn = re.findall(
            r'<pre class="mermaid"[^>]*><svg [^>]*aria-roledescription="([a-z0-9-]+)"', seen, re.IGNORECASE
        )
        assert (page.name, len(drawn)) == (page.name, page.read_text(encoding="utf-8").count("```mermaid"))
        assert "error" not in drawn


def test_every_generated_part_has_its_place() -> None:
    """Each generated part is on exactly one page of docs/reference; an unknown part is an error."""
    pages = [path.read_text(encoding="utf-8") for path in ROOT.glob("docs/reference/*.md")]
    marks = [name for page in pages for name in re.findall(r"^<!-- generated: ([a-z-]+) -->$", page, re.MULTILINE)]

    assert sorted(marks) == sorted(PARTS)


def test_a_code_host_says_where_each_generated_part_is() -> None:
    """Below its mark a quotation names the source and the command that prints it; the site has the part instead."""
    for path in ROOT.glob("docs/reference/*.md"):
        page = path.read_text(encoding="utf-8")
        for name, quoted in re.findall(r"^<!-- generated: ([a-z-]+) -->\n((?:> .*\n)*)", page, re.MULTILINE):
            told = " ".join(quoted.replace("> ", " ").split())
            assert re.fullmatch(
                r"The site has this part, made of \[`\S+`\]\(\S+\)\."
                rf" `\.venv/bin/python -P -m scripts\.reference {name}` prints it\.",
                told,
            ), (path.name, name)
        assert "The site has this part" not in filled(page)


def test_pages_that_the_code_cites_exist() -> None:
    """Each page that an error or a docstring names exists; none names a section of the README."""
    rooms = ("handler", "infra", "safewriter", "scripts")
    sources = [path.read_text(encoding="utf-8") for room in rooms for path in (ROOT / room).rglob("*.py")]
    cited = {page for source in sources for page in re.findall(r"docs/[a-z-]+/[a-z-]+", source)}

    assert "docs/reference/event" in cited
    assert [page for page in cited if not (ROOT / f"{page}.md").exists()] == []
    assert [found for source in sources for found in re.findall(r"README, .*", source)] == []


def test_each_threat_names_the_test_of_its_protection() -> None:
    """Each row of SECURITY's tables of threats, one in each section, names an existing test."""
    threats = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("\n## Threats\n")[2].partition("\n## ")[0]
    sections = threats.split("\n### ")[1:]
    rows = [rows_of_threats(section) for section in sections]
    assert sum(map(len, rows)) >= 70
    assert sum(line.startswith("|") for line in threats.splitlines()) == sum(len(found) + 2 for found in rows)
    for threat, *_, named in (row for found in rows for row in found):
        path, _, test = named.strip("`").partition("::")
        functions = [
            node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        assert test in functions, threat


def rows_of_threats(section: str) -> list[list[str]]:
    """Return the cells of each row of the section's only table."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert lines[:2] == [f"| {' | '.join(THREAT_COLUMNS)} |", "|---|---|---|---|"], section
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert rows, section
    for line, row in zip(lines[2:], rows, strict=True):
        assert len(row) == len(THREAT_COLUMNS), line
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`", row[-1]), line
    return rows


def test_the_map_of_the_code_names_files_that_exist() -> None:
    """Each path on the code map exists."""
    page = (ROOT / "docs/concepts/code-map.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/.-]+/[\w.-]+)`", page)
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []
