"""The handler copies an attempt's Spark event logs into the checkpoint bucket: all of them, masked, and in time."""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
from typing import TYPE_CHECKING

import pytest

from handler.redaction.effort import Effort
from handler.redaction.redact import Redactor
from handler.runs import event_logs
from handler.runs.event_logs import keep, prefix_of
from handler.runs.record import RunRecord
from safewriter.objects import StoreError
from safewriter.parsing import parsed
from tests.support.memory_store import MemoryObjectStore
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pathlib import Path

RECORD = RunRecord(
    run_key="nightly/2026-11-20",
    fingerprint="f",
    name=None,
    entry_point="s3://scripts/a.py",
    attempt=2,
    run_id="run-2",
    previous_run_id="run-1",
    request_id="q",
    state="RUNNING",
    started_ms=1,
    deadline_ms=2,
    result_uri="s3://memory/results/run-2/run_result.json",
)
START = b'{"Event":"SparkListenerApplicationStart","App ID":"local-1"}\n'
REDACTOR = Redactor(effort=Effort(math.inf)).knowing_secrets(["s3cret-of-the-catalog"])


class Bench:
    """A folder of event logs, and a checkpoint bucket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryObjectStore()
        self.overdue = 0

    def keep(self, redactor: Redactor = REDACTOR, *, budget_ms: int = BUSY_S * 1000) -> tuple[str, ...]:
        return keep(self.folder, self.store, RECORD, redactor, budget_ms=budget_ms, when_overdue=self._count_overdue)

    def _count_overdue(self) -> None:
        self.overdue += 1

    @property
    def kept(self) -> dict[str, bytes]:
        keys = [listed.key for listed in self.store.list(prefix_of(RECORD.run_key))]
        return {key.removeprefix(prefix_of(RECORD.run_key)): self.store._objects[key][0] for key in keys}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_log_of_an_attempt_is_kept_under_its_run(bench: Bench) -> None:
    """The name tells the attempt, and whether Spark has ended the log: a script may have stopped one Spark before it
    was killed in the next.
    """
    bench.folder.joinpath("local-1").write_bytes(START)
    bench.folder.joinpath("local-2.inprogress").write_bytes(START * 2)
    assert (bench.keep(), bench.overdue) == ((), 0)
    assert bench.kept == {"000002-run-2-1": START, "000002-run-2-2.inprogress": START * 2}


def test_a_job_without_spark_keeps_nothing(bench: Bench) -> None:
    """It is no reason for a warning."""
    assert bench.keep() == ()
    assert bench.kept == {}


def test_no_event_holds_a_secret_and_each_stays_an_event(bench: Bench) -> None:
    """A secret goes by its value, its form and its name, in a plan, in settings and in a name; numbers stay."""
    events = [
        {"Event": "Environment", "Spark Properties": {"spark.sql.catalog.lake.credential": "id:0123456789", "a": "b"}},
        {"Event": "SQL", "physicalPlanDescription": "Filter (x = s3cret-of-the-catalog)", "executionId": 7},
        {"Event": "SQL", "details": "jdbc:postgresql://u:hunter22hunter@h/db", "nodes": [{"time": 1.5}]},
        {"Event": "Other", "s3cret-of-the-catalog": 1},
    ]
    bench.folder.joinpath("local-1").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert bench.keep() == ()
    (text,) = bench.kept.values()
    found = [json.loads(line) for line in text.splitlines()]
    assert found[0]["Spark Properties"] == {"spark.sql.catalog.lake.credential": "[redacted]", "a": "b"}
    assert found[1] == {"Event": "SQL", "physicalPlanDescription": "Filter (x = [redacted])", "executionId": 7}
    assert (found[2]["nodes"], found[3]) == ([{"time": 1.5}], {"Event": "Other", "[redacted]": 1})
    assert not any(secret in text for secret in (b"0123456789", b"s3cret", b"hunter22"))


@pytest.mark.parametrize(
    "pair",
    [
        ["fs.s3a.secret.key", "0123456789"],
        {"name": "fs.s3a.secret.key", "value": "0123456789"},
        {"Key": "db.password", "Value": ["0123456789"]},
    ],
)
def test_a_secret_beside_its_name_goes_from_an_event(bench: Bench, pair: object) -> None:
    """In a list the name stands before the value, in an object it is a member of its own; other pairs stay."""
    event = {"Event": "Environment", "Spark Properties": [["a", "b"], {"name": "c", "value": "d"}, pair]}
    bench.folder.joinpath("local-1").write_text(f"{json.dumps(event)}\n")
    assert bench.keep() == ()
    (text,) = bench.kept.values()
    *others, masked = json.loads(text)["Spark Properties"]
    assert others == [["a", "b"], {"name": "c", "value": "d"}]
    assert masked == json.loads(json.dumps(pair).replace("0123456789", "[redacted]"))


@pytest.mark.parametrize(
    "text",
    [
        "password\t=\thunter22",
        json.dumps({"password": "hunter22"}),
        json.dumps({"fs.s3a.secret.key": "hunter22"}),
        "options(\n  password\n = 'hunter22')",
        'CREATE USER x PASSWORD "hunter22"',
    ],
)
def test_a_secret_that_json_writes_with_escapes_goes_from_an_event(bench: Bench, text: str) -> None:
    """The text is searched, not its JSON."""
    bench.folder.joinpath("local-1").write_text(f"{json.dumps({'Event': 'Start', 'details': text})}\n")
    assert bench.keep() == ()
    (kept,) = bench.kept.values()
    assert json.loads(kept)["Event"] == "Start"
    assert b"hunter22" not in kept


def test_half_a_letter_in_an_event_ends_no_job(bench: Bench) -> None:
    """Spark shortens texts within an emoji, whose first half no encoding can write."""
    bench.folder.joinpath("local-1").write_bytes(b'{"Event":"Start","details":"\\ud83d"}\n')
    assert bench.keep() == ()
    (kept,) = bench.kept.values()
    assert kept == b'{"Event":"Start","details":"\\ud83d"}\n'


def test_a_bug_in_the_copy_ends_no_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is a sentence."""
    bench.folder.joinpath("local-1").write_bytes(START)
    monkeypatch.setattr(event_logs, "parsed", lambda _: 1 / 0)
    assert bench.keep() == ("Spark's event log is not kept: ZeroDivisionError('division by zero')",)


def test_a_pair_of_an_event_itself_and_a_name_that_stands_twice_hide_nothing(bench: Bench) -> None:
    """Of two members of one name Spark's history server reads the second, and a person's editor shows both."""
    bench.folder.joinpath("local-1").write_text(
        '{"name":"password","value":"hunter22"}\n{"password":"hunter22","password":"x"}\n'
    )
    assert bench.keep() == ()
    (kept,) = bench.kept.values()
    assert b"hunter22" not in kept
    assert len(kept.splitlines()) == 2


def test_the_line_in_which_spark_was_killed_is_left_out(bench: Bench) -> None:
    """It would hold half of a secret, by which nobody knows it."""
    bench.folder.joinpath("local-1.inprogress").write_bytes(START + b'{"plan":"s3cret-of-the')
    assert bench.keep() == ()
    assert list(bench.kept.values()) == [START]


def test_what_nothing_has_searched_for_secrets_is_not_kept(bench: Bench) -> None:
    """The time for the search is over; a sentence tells that events are missing."""
    bench.folder.joinpath("local-1").write_bytes(START)
    hours = itertools.count(step=3600)
    (told,) = bench.keep(Redactor(effort=Effort(math.inf, lambda: float(next(hours)))))
    assert "events are missing" in told
    assert list(bench.kept.values()) == [b""]


def test_a_copy_without_time_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer does not wait for a store that hangs."""
    goes_on = threading.Event()

    def hang(*_: object) -> str:
        goes_on.wait(BUSY_S)
        return ""

    bench.folder.joinpath("local-1").write_bytes(START)
    monkeypatch.setattr(bench.store, "put", hang)
    (told,) = bench.keep(budget_ms=200)
    goes_on.set()
    assert "no answer within 200 ms" in told
    assert bench.overdue == 1


def test_a_log_beyond_the_bound_is_kept_up_to_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler's memory is the function's; the sentence names the log."""
    monkeypatch.setattr(event_logs, "_BYTES_MAX", len(START) * 2)
    bench.folder.joinpath("local-1").write_bytes(START * 3)
    (told,) = bench.keep()
    assert "larger than 32 MiB" in told
    assert "000002-run-2-1" in told
    assert list(bench.kept.values()) == [START * 2]


def test_an_event_that_would_take_much_memory_is_left_out_unsearched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its search would take a hundred times its size, which the next run's JVM lacks."""
    searched: list[int] = []

    def watched(text: str) -> object:
        searched.append(len(text))
        return parsed(text)

    monkeypatch.setattr(event_logs, "parsed", watched)
    large, largest = b'{"a":"%s"}' % (b"x" * ((256 << 10) - 8)), b"\\n" * (129 << 10)
    bench.folder.joinpath("local-1").write_bytes(b"%s%s\n%s\n%s" % (START, largest, large, START))
    (told,) = bench.keep()
    assert "an event than 256 KiB" in told
    assert searched == [len(START) - 1, len(large), len(START) - 1]
    assert list(bench.kept.values()) == [b"%s%s\n%s" % (START, large, START)]


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_a_script_has_put_in_the_place_of_a_log_is_not_read(bench: Bench, tmp_path: Path, kind: str) -> None:
    """A link could lead to a file of the handler, and a pipe would wait for ever."""
    bench.folder = tmp_path / "logs"
    bench.folder.mkdir()
    other = tmp_path / "other"
    other.write_bytes(START)
    log = bench.folder / "local-1"
    if kind == "link":
        log.symlink_to(other)
    else:
        os.mkfifo(log)
    (told,) = bench.keep()
    assert told
    assert START not in bench.kept.values()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_log_costs_no_other_one(bench: Bench, kind: str) -> None:
    """A script's folder for checkpoints may lie there; of a link a sentence tells."""
    strange = bench.folder / "local-0"
    if kind == "folder":
        strange.mkdir()
    else:
        strange.symlink_to("/dev/null")
    bench.folder.joinpath("local-1").write_bytes(START)

    told = bench.keep()
    assert list(bench.kept.values()) == [START]
    assert [("local-0 is not kept" in each) for each in told] == ([] if kind == "folder" else [True])


def test_what_was_searched_in_time_is_kept(bench: Bench) -> None:
    """The log of a long job would be lost as a whole, and with it the JVM that the next run could have."""
    moments = itertools.count(step=100)
    bench.folder.joinpath("local-1").write_bytes(START * 20)
    told = keep(
        bench.folder, bench.store, RECORD, REDACTOR, budget_ms=2_000_000, when_overdue=bench._count_overdue,
        clock=lambda: float(next(moments)),
    )  # fmt: skip

    assert list(bench.kept.values()) == [START * 9]
    assert ["events are missing" in each for each in told] == [True]
    assert bench.overdue == 0


def test_a_store_that_takes_nothing_is_a_sentence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job has ended, and its state stays the same."""

    def refuse(*_: object) -> str:
        raise StoreError("denied")

    bench.folder.joinpath("local-1").write_bytes(START)
    monkeypatch.setattr(bench.store, "put", refuse)
    assert bench.keep() == ("Spark's event log is not kept: denied",)
