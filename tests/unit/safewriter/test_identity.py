"""Runs, writes and attempts get their names: keys equal on every retry, nonces and prefixes of each attempt."""

from __future__ import annotations

import dataclasses
import multiprocessing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.errors import UnsupportedError
from safewriter.identity import EPOCH_MAX, Attempt, Run, Write, _Process, attempts_in, canonical_table
from safewriter.objects import Location

WRITE = Write(Run("run", "id", None, "job"), Location("lake", "t"), "delta", None)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("path", ["lake/a/b", "lake/a/b/", "lake//a///b//", "lake/a//b"])
def test_one_table_has_one_name(scheme: str, path: str) -> None:
    """Scheme and slashes do not make another table."""
    assert canonical_table(f"{scheme}://{path}") == Location("lake", "a/b")


@pytest.mark.parametrize("text", ["catalog.db.table", "file:///tmp/t", "hdfs://h/t", "", "s3://", "s3://UPPER/x", "/t"])
def test_what_is_no_table_on_s3_is_refused(text: str) -> None:
    """Only path tables on S3 are guarded, and the error says so."""
    with pytest.raises(UnsupportedError, match="path"):
        canonical_table(text)


@pytest.mark.parametrize("text", ["s3://lake", "s3a://lake/", "s3://lake//"])
def test_a_whole_bucket_is_no_table(text: str) -> None:
    """Clean-up lists a table's prefix, so it must have one."""
    with pytest.raises(UnsupportedError, match="whole bucket"):
        canonical_table(text)


def test_the_run_comes_from_the_handler() -> None:
    """Key, id, request and fingerprint are passed in the environment."""
    found = Run.from_environment(
        {
            "SOAL_RUN_ID": "id",
            "SOAL_RUN_KEY": "key",
            "SOAL_REQUEST_ID": "request",
            "SOAL_JOB_FINGERPRINT": "fingerprint",
        }
    )

    assert found == Run("key", "id", "request", "fingerprint")


def test_without_a_handler_a_process_is_one_run() -> None:
    """Two blocks of one process belong together, and the key is not empty."""
    first, second = Run.from_environment({}), Run.from_environment({})

    assert first == second
    assert first.key == first.id != ""


def test_the_write_key_is_the_same_on_every_retry() -> None:
    """Run id, request and format are of the attempt; they do not change the key."""
    retry = dataclasses.replace(WRITE, run=Run("run", "other", "request", "job"), format="iceberg")

    assert retry.key == WRITE.key
    assert WRITE.key.startswith("sw-")
    assert len(WRITE.key) == 35


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(WRITE, run=Run("run2", "id", None, "job")),
        dataclasses.replace(WRITE, table=Location("lake", "t2")),
        dataclasses.replace(WRITE, step="t"),
        dataclasses.replace(WRITE, step=""),
    ],
)
def test_another_run_table_or_step_is_another_write(other: Write) -> None:
    """Each part of the name counts, and a missing step is not an empty one."""
    assert other.key != WRITE.key


@given(st.tuples(st.text(), st.none() | st.text()), st.tuples(st.text(), st.none() | st.text()))
def test_two_names_never_share_a_key(one: tuple[str, str | None], other: tuple[str, str | None]) -> None:
    """The parts are kept apart, whatever characters they hold."""
    keys = [Write(Run(key, "id"), Location("lake", "t"), "delta", step).key for key, step in (one, other)]

    assert (keys[0] == keys[1]) == (one == other)


@pytest.mark.parametrize(
    "other",
    [dataclasses.replace(WRITE, run=Run("run", "id", None, "job2")), dataclasses.replace(WRITE, format="iceberg")],
)
def test_another_job_under_the_same_key_has_another_fingerprint(other: Write) -> None:
    """Script, arguments and format must not change between two attempts."""
    assert other.key == WRITE.key
    assert other.fingerprint != WRITE.fingerprint


def test_each_attempt_has_a_nonce_of_its_own() -> None:
    """Sixteen hexadecimal digits, never the same."""
    nonces = {Attempt.draw().nonce for _ in range(100)}

    assert len(nonces) == 100
    assert {len(nonce) for nonce in nonces} == {16}


def test_a_prefix_names_write_epoch_and_attempt() -> None:
    """Clean-up of one attempt can never take a file of another, also of the same process one epoch later."""
    attempt = Attempt("00ff")

    prefixes = {
        attempt.file_prefix(WRITE.key, 1),
        attempt.file_prefix(WRITE.key, 11),
        Attempt("00fe").file_prefix(WRITE.key, 1),
    }

    assert len(prefixes) == 3
    assert not any(one.startswith(other) for one in prefixes for other in prefixes if one != other)
    assert all(prefix.startswith(f"{WRITE.key}-") and prefix.endswith("-") for prefix in prefixes)


def test_a_stream_is_a_run_of_its_own_whatever_job_drives_it() -> None:
    """Its batches are the same writes in another run, and with another script."""
    one = Run("a", "1", None, "script").of_stream("q", "start")
    two = Run("b", "2", "r", "other").of_stream("q", "start")
    table = canonical_table("s3://lake/t")
    assert Write(one, table, "delta", "batch 3").key == Write(two, table, "delta", "batch 3").key
    assert Write(one, table, "delta", "batch 3").fingerprint == Write(two, table, "delta", "batch 3").fingerprint
    assert Write(one, table, "delta", "batch 4").key != Write(one, table, "delta", "batch 3").key
    assert (two.id, two.request_id) == ("2", "r")


def test_a_delivery_is_the_same_in_all_processes_of_an_attempt_and_another_for_each_start_of_a_stream() -> None:
    """A write that comes again in one delivery is a second block; in another one it is a retry."""
    run = Run.from_environment({"SOAL_RUN_ID": "id", "SOAL_RUN_KEY": "key"})
    deliveries = {run.delivery, run.of_stream("q", "start 1").delivery, run.of_stream("q", "start 2").delivery}

    assert len(deliveries) == 3
    assert run.delivery == Run.from_environment({"SOAL_RUN_ID": "id", "SOAL_RUN_KEY": "key"}).delivery
    assert run.delivery != Run.from_environment({"SOAL_RUN_ID": "retry", "SOAL_RUN_KEY": "key"}).delivery


def test_an_empty_key_is_no_key() -> None:
    """All jobs with an empty variable would be one run, and the second one's write would be skipped."""
    run = Run.from_environment({"SOAL_RUN_KEY": "", "SOAL_RUN_ID": ""})

    assert run == Run.from_environment({})
    assert run.key


@pytest.mark.parametrize("epoch", ["9" * 24, "9" * 5_000, "1000000000", "\u0661", "-1", ""])
def test_an_epoch_that_no_attempt_reaches_is_no_attempt_s(epoch: str) -> None:
    """Somebody else has put the name there: a retry would have to go beyond it."""
    assert attempts_in([f"sw-{'a' * 32}-{epoch}-{'b' * 16}"], f"sw-{'a' * 32}") == {}
    last = f"sw-{'a' * 32}-{EPOCH_MAX}-{'b' * 16}"
    assert attempts_in([last], f"sw-{'a' * 32}") == {last: EPOCH_MAX}


def test_two_writes_whose_keys_begin_alike_have_no_attempt_in_common() -> None:
    """Tokens with 48 equal bits are found in a minute: one of them would count the other's commit as its own."""
    one, two = (
        Write(Run(token, "id"), "lite.db.collide", "iceberg", None).key
        for token in ("order-batch-3358202", "order-batch-691091")
    )
    assert one != two
    assert one[:15] == two[:15]
    names = [Attempt("0" * 16).file_prefix(key, 1).rstrip("-") for key in (one, two)]
    assert attempts_in(names, one) == {names[0]: 1}
    assert attempts_in(names, two) == {names[1]: 1}


def test_an_attempt_that_an_earlier_version_has_named_is_one() -> None:
    """It had the first twelve digits of the key: a retry after an update of the image must not write again."""
    key, end = f"sw-{'a' * 32}", f"-3-{'b' * 16}"
    earlier = f"{key[:15]}{end}"
    assert attempts_in([earlier, f"{key}{end}", f"{key[:20]}{end}", f"{key}a{end}"], key) == {
        earlier: 3,
        f"{key}{end}": 3,
    }


def test_a_process_that_is_forked_off_is_another_run() -> None:
    """It was forked after the import, so it has its parent's memory."""
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=lambda: queue.put(Run.from_environment({}).key))
    child.start()
    forked = queue.get(timeout=60)
    child.join(60)

    assert forked != Run.from_environment({}).key


def test_a_process_draws_its_id_once_and_again_in_each_fork() -> None:
    """Whatever was imported or called before."""
    process = _Process()
    before = process.run_id
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=lambda: queue.put(process.run_id))
    child.start()
    forked = queue.get(timeout=60)
    child.join(60)

    assert len({before, forked, _Process().run_id}) == 3
    assert process.run_id == before


def test_table_and_step_do_not_run_together_in_a_key() -> None:
    """Two writes of a run would have one key, and the second would be skipped."""
    run = Run("run", "id")
    assert (
        Write(run, Location("lake", "t"), "delta", "xNone").key != Write(run, Location("lake", "tx"), "delta", None).key
    )
