"""`soal locks …` on the tests' S3 and on locks of this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from safewriter.coordination.backends.memory import MemoryBackend, by_name
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import renew
from safewriter.errors import TurnLostError
from soal.console.problem import Problem
from tests.support.command_line import app

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record
    from soal.testing.s3 import EmbeddedS3

BUCKET = "soal-locks"
WRITE = OpenWrite("s3://soal-checkpoints", "write-1", 1)


class Bench:
    """Locks in a folder of their own on the tests' S3, and `soal locks …` on them."""

    def __init__(self, s3: EmbeddedS3, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            monkeypatch.setenv(variable, value)
        self.endpoint = s3.endpoint
        self.where = f"{BUCKET}/{name}"
        self.client = s3.client()
        if BUCKET not in [row["Name"] for row in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET)

    def coordinator(self, job: str, predecessor: str | None = None) -> JobCoordinator:
        configuration = Configuration(lock="TABLE", job=job, predecessor=predecessor, backend=f"s3://{self.where}")
        return JobCoordinator(configuration, run=f"run-of-{job}", decided=lambda writes: writes)

    def soal(self, *arguments: str, answer: str = "") -> tuple[int, str, str]:
        return soal(*arguments, "--endpoint-url", self.endpoint, "--bucket", self.where, answer=answer)


def soal(*arguments: str, answer: str = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["locks", *arguments], input=answer)
    if isinstance(done.exception, Problem):
        return done.exception.exit_code, done.stdout, f"{done.exception} / {done.exception.todo}"
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def bench(s3: EmbeddedS3, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(s3, request.node.name, monkeypatch)


def test_list_show_and_history(bench: Bench) -> None:
    """The commands show holder, run and token, for a person and for a program; the probed record is no lock."""
    with bench.coordinator("Ingestion").turn():
        code, out, _ = bench.soal("list", "--json")
        ((lock, holder),) = [(one["lock"], one["holder"]["job"]) for one in json.loads(out)]
        assert (code, lock, holder) == (0, "TABLE", "Ingestion")
        code, out, _ = bench.soal("show", "TABLE")
        assert (code, "Ingestion (run run-of-Ingestion) holds it" in out) == (0, True)
    report = json.loads(bench.soal("show", "TABLE", "--json")[1])
    assert (report["holder"], report["token"], report["turns"][0]["end"]) == (None, 1, "completed")
    with bench.coordinator("Ingestion").turn():
        pass
    turns = json.loads(bench.soal("history", "TABLE", "--json", "--limit", "1")[1])
    assert [(one["token"], one["run"]) for one in turns] == [(2, "run-of-Ingestion")]


def test_a_lock_that_is_not_there(bench: Bench) -> None:
    """The answer names the existing locks."""
    with bench.coordinator("Ingestion").turn():
        pass
    code, out, said = bench.soal("show", "TABEL")
    assert (code, out) == (1, "")
    assert f"there is no lock 'TABEL' in s3://{bench.where}" in said
    assert "(TABLE)" in said


def test_a_damaged_record_hides_no_other(bench: Bench) -> None:
    """The list shows the rest, names the record, and does not exit with 0."""
    with bench.coordinator("Ingestion").turn():
        pass
    folder = bench.where.partition("/")[2]
    bench.client.put_object(Bucket=BUCKET, Key=f"{folder}/locks/OTHER.json", Body=b"{}")
    code, out, said = bench.soal("list", "--json")
    assert (code, [one["lock"] for one in json.loads(out)]) == (1, ["TABLE"])
    assert "locks/OTHER.json" in said
    assert bench.soal("show", "OTHER")[0] == 1


def test_release_asks_and_fences(bench: Bench) -> None:
    """Without --force, or without a yes, nothing changes; after it the old holder can open no write."""
    held = bench.coordinator("Mutation")
    turn = held.lock()
    turn.open_write(WRITE)
    code, _, said = bench.soal("release", "TABLE")
    assert (code, "the turn of Mutation (run run-of-Mutation) on TABLE, token 1, with 1 writes" in said) == (2, True)
    assert "--force ends its turn now" in said
    for answer in ("", "n\n"):
        assert bench.soal("release", "TABLE", "--force", answer=answer)[::2] == (
            1,
            "nothing was changed / answer y, or give --yes",
        )
    turn.check()

    code, out, said = bench.soal("release", "TABLE", "--force", "--json", answer="y\n")
    report = json.loads(out)
    assert (code, report["holder"], report["turns"][0]["end"]) == (0, None, "forced")
    assert [one["writeKey"] for one in report["unsettled"]] == ["write-1"]
    assert "the next holder settles 1 writes first" in said
    with pytest.raises(TurnLostError, match="an operator ended it"):
        turn.open_write(WRITE)
    assert not held.unlock()
    assert bench.soal("release", "TABLE", "--force", "--yes")[::2] == (
        1,
        "nobody holds TABLE, so there is nothing to release / see why a job waits with: soal locks show TABLE",
    )


def test_probe_tells_whether_a_server_can_keep_a_lock(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words and by the exit code; the record that it leaves is not listed."""
    code, out, _ = bench.soal("probe")
    assert (code, out.strip()) == (0, f"s3://{bench.where} can keep a lock")
    assert json.loads(bench.soal("list", "--json")[1]) == []

    class Heedless(MemoryBackend):
        def write(self, record: Record, after: Stored | None) -> Stored:
            return super().write(record, self.read(record.lock))

    monkeypatch.setattr("soal.locks.service.open_backend", lambda _: Heedless())
    code, out, _ = soal("probe", "--backend", "memory://heedless", "--json")
    assert (code, json.loads(out)["keepsLocks"]) == (1, False)
    assert "cannot keep a lock" in json.loads(out)["problem"]


def test_which_service_is_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """--backend takes precedence over --bucket, and that over SW_LOCKS."""
    monkeypatch.setenv("SW_LOCKS", "memory://of-the-variable")
    for name in ("of-the-variable", "of-the-option"):
        coordinator = JobCoordinator(Configuration(lock=name, job="Ingestion"), by_name(name))
        coordinator.nothing_to_do()
    with bench.coordinator("Ingestion").turn():
        pass
    calls = {
        "of-the-option": ("--backend", "memory://of-the-option"),
        "of-the-variable": (),
        "TABLE": ("--backend", f"s3://{bench.where}", "--endpoint-url", bench.endpoint),
    }
    for lock, options in calls.items():
        assert [one["lock"] for one in json.loads(soal("list", "--json", *options)[1])] == [lock]
    assert [one["lock"] for one in json.loads(bench.soal("list", "--json")[1])] == ["TABLE"]
    code, _, said = soal("list", "--backend", "redis://there")
    assert (code, "correct --backend, or SW_LOCKS" in said) == (2, True)


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        ("nothing", "Mutation did not renew for 0.01 s; its lease is 30 s"),
        ("renewal", "Mutation is alive: it renewed 1 times in 0.01 s"),
        ("end", "the turn of Mutation ended within 0.01 s"),
    ],
)
def test_show_can_look_whether_the_holder_renews(happens: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reads show whether the holder renews its lease."""
    backend = by_name(f"renewing-{happens}")
    held = JobCoordinator(Configuration(lock="L", job="Mutation"), backend)
    held.lock()

    def meanwhile(_: float) -> None:
        stored = backend.read("L")
        assert stored is not None
        if happens == "renewal":
            backend.write(renew(stored.record), stored)
        elif happens == "end":
            held.unlock(End.FAILED)

    monkeypatch.setattr("soal.commands.locks.sleep", meanwhile)
    code, _, said = soal("show", "L", "--backend", f"memory://renewing-{happens}", "--for-s", "0.01")
    held.unlock()
    assert (code, said.strip()) == (0, told)
