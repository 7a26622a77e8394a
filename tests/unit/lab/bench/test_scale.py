"""The arithmetic of appends of many rows, how one that does not fit is named, and the words that start a container."""

from __future__ import annotations

import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from scripts.accommodations import Accommodation
from scripts.image.docker import Docker
from tests.lab.bench.container import Container
from tests.lab.bench.scale import Spent, row_of
from tests.lab.bench.scale_rows import COLUMNS
from tests.lab.bench.scale_session import DONE, HEAP_FULL, KILLED, outcome_of, own_options


def test_the_guards_share_is_that_of_the_pairs() -> None:
    """The median of the pairs' own shares, whatever the medians of the two ways are; the peak is the highest."""
    pairs = [
        (Spent(DONE, 1.0, 700), Spent(DONE, 2.0, 710)),
        (Spent(DONE, 4.0, 720), Spent(DONE, 5.0, 705)),
        (Spent(DONE, 3.0, 715), Spent(DONE, 3.0, 715)),
    ]
    row = row_of(1769, "unlimited", 1150, "delta", 100, pairs)
    assert (row.pairs, row.plain_end, row.guarded_end) == (3, DONE, DONE)
    assert (row.plain_s, row.guarded_s, row.added_s) == (3.0, 3.0, 1.0)
    assert row.guard_share == pytest.approx(0.2)
    assert row.plain_rows_per_s == row.guarded_rows_per_s == pytest.approx(100 / 3)
    assert (row.plain_jvm_mb, row.guarded_jvm_mb) == (720, 715)


def test_an_append_that_does_not_fit_has_no_figures() -> None:
    """Those of the way that fits stay, and there is no pair."""
    row = row_of(1769, "container", 1150, "delta", 100, [(Spent(DONE, 1.0, 700), Spent(KILLED))])
    assert (row.pairs, row.plain_end, row.guarded_end) == (0, DONE, KILLED)
    assert (row.plain_s, row.guarded_s, row.added_s, row.guard_share) == (1.0, None, None, None)
    assert (row.plain_rows_per_s, row.guarded_rows_per_s) == (100, None)
    assert (row.plain_jvm_mb, row.guarded_jvm_mb) == (700, None)


@pytest.mark.parametrize(
    ("exit_code", "outcome"),
    [
        (-9, KILLED),
        (137, KILLED),
        (3, HEAP_FULL),
        (1, "Java ended with exit code 1"),
        (None, "failed: ValueError"),
    ],
)
def test_how_java_ended_is_the_outcome(exit_code: int | None, outcome: str) -> None:
    """A JVM that runs on has refused the append itself."""
    assert outcome_of(exit_code, ValueError("no")) == outcome


def test_the_handlers_options_of_java_are_taken_without_the_heap() -> None:
    """Spark refuses a heap among them, and has a class path of its own."""
    assert own_options(("java", "-Xmx9m", "-XX:+UseSerialGC", "-cp", "a:b", "Main")) == ["-XX:+UseSerialGC"]
    with pytest.raises(ValueError, match="no class path"):
        own_options(("java", "-Xmx9m", "Main"))


def test_the_rows_have_the_columns_of_the_sample_data() -> None:
    """In its order."""
    assert list(COLUMNS) == [field.name for field in fields(Accommodation)]


def words(environ: dict[str, str], **docker: Any) -> tuple[str, ...]:
    made = Container(Docker("docker", docker.get("host"), is_own=False), "sha256:1", Path("/scratch"))
    return made.words(1769, environ)


def test_a_container_has_the_memory_of_the_function_and_no_swap() -> None:
    """Swap would let a process be slow where the function is killed."""
    line = words({}, host="unix:///d.sock")
    assert line[:4] == ("docker", "--host", "unix:///d.sock", "run")
    assert line[line.index("--memory") + 1] == line[line.index("--memory-swap") + 1] == "1769m"
    assert line[-1] == "sha256:1"


def test_a_container_writes_only_to_its_folder_and_gets_only_what_jobs_read() -> None:
    """All other mounts are read-only. A variable's value is in no command line."""
    line = words({"AWS_REGION": "r", "GITHUB_TOKEN": "t"})
    mounts = [after for word, after in itertools.pairwise(line) if word == "--volume"]
    assert [mount for mount in mounts if not mount.endswith(":ro")] == ["/scratch:/scratch"]
    assert "AWS_REGION" in line
    assert "GITHUB_TOKEN" not in line
