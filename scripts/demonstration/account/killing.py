"""Jobs that do not end by themselves: one reaches its deadline, others lose their container in a write."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS
from scripts.demonstration.account.journey import TABLE
from soal.console.problem import EXIT_DEADLINE
from soal.console.progress import JobProgress

if TYPE_CHECKING:
    import subprocess

    from scripts.demonstration.account.journey import Journey
    from scripts.tables.delta import TableView

HOLD: Final = "hold"
HUNG_S: Final = 600
_FREEZE: Final = "kill -STOP -1"
"""All processes but the first one, which is the service's."""
WRITES_S: Final = 120.0
_SWEPT_S: Final = 300.0


def deadline(journey: Journey) -> None:
    """A job hangs in a write until its deadline."""
    journey.act(f"A job that hangs in a write, in a function of {journey.context['timeout_s']} s")
    before = journey.table()
    hold(journey, "write", HUNG_S)
    said = journey.invoke(held(journey, "hung"))
    found = said.document or {}
    statuses = [write["status"] for write in found.get("writes", ())]
    journey.check(
        f"soal invoke ends with exit code {EXIT_DEADLINE}: TIMED_OUT, and the write is rolled_back",
        holds=(said.exit_code, found.get("state"), statuses) == (EXIT_DEADLINE, "TIMED_OUT", ["rolled_back"]),
    )
    after = journey.table()
    journey.check("the table is as it was, and no file of the write is left", holds=after == before)


def hold(journey: Journey, point: str, seconds: int) -> None:
    """Set where the job `accommodations_held` waits from now on, and how long."""
    journey.client("s3").put_object(Bucket=journey.made["LakeBucket"], Key=HOLD, Body=f"{point} {seconds}".encode())


def held(journey: Journey, token: str, table: str = TABLE) -> dict[str, Any]:
    """Return the event of the job that waits."""
    return journey.event("accommodations_held", token, "--hold", journey.lake(HOLD), table=table)


def frozen(journey: Journey) -> None:
    """All processes of a job stop, the handler too: the service kills the sandbox at the timeout."""
    journey.act("A sandbox freezes in a write; the service kills it at its timeout")
    before = journey.table()
    process = in_a_write(journey, "frozen")
    for container in _containers(journey):
        journey.here.docker.read("exec", container, "sh", "-c", _FREEZE)
    with JobProgress(journey.console, "the timeout"):
        said = journey.show(journey.wait_for(process))
    journey.check(
        f"soal invoke ends with exit code {EXIT_DEADLINE}, without a result",
        holds=said.exit_code == EXIT_DEADLINE and said.state is None,
    )
    gone = journey.waits("the end of its container", lambda: not _containers(journey), WRITES_S)
    journey.check("Docker lists no container of the function any more", holds=gone is not None)
    repeat_lands_once(journey, "frozen", before)


def killed_and_recovered(journey: Journey) -> None:
    """An operator settles what the killed job has left, before anything else does."""
    journey.act("A container is killed in a write; soal recover settles it")
    before = journey.table()
    _killed_in_a_write(journey, "recovered", before)
    journey.waits("the end of its leases", lambda: _is_dead(journey, "recovered"), WRITES_S)
    said = journey.soal("recover", "--json")
    journey.check("soal recover ends with exit code 0", holds=said.exit_code == 0)
    _holds_what_it_held(journey, "after that", before)
    repeat_lands_once(journey, "recovered", before)


def _is_dead(journey: Journey, token: str) -> bool:
    """Return whether the leases of a run and of its writes are over: each is renewed by its own clock."""
    run = journey.run_of(token)
    return {run.get("life"), *(write["life"] for write in run.get("writes", ()))} == {"dead"}


def killed_and_retried(journey: Journey) -> None:
    """The next attempt settles what the killed one has left, and repeats it."""
    journey.act("Killed in a write; the next attempt settles it")
    before = journey.table()
    _killed_in_a_write(journey, "killed", before)
    repeat_lands_once(journey, "killed", before)


def killed_and_swept(journey: Journey) -> None:
    """The sweeper finds what a killed job has left, by its rule, and no retry comes."""
    journey.act("Killed in a write; the sweeper settles it, called by its rule")
    before = journey.table()
    _killed_in_a_write(journey, "swept", before)
    rules = journey.client("events").list_rules()["Rules"]
    sweeps = [(rule["ScheduleExpression"], rule["State"]) for rule in rules if "Sweeper" in rule["Name"]]
    journey.check(
        "EventBridge describes the sweeper's rule: rate(1 minute), enabled",
        holds=sweeps == [("rate(1 minute)", "ENABLED")],
    )
    waited = journey.waits("the sweeper", lambda: journey.look().orphans == (), _SWEPT_S)
    _holds_what_it_held(journey, f"{waited or _SWEPT_S:.0f} s after the kill", before)
    repeat_lands_once(journey, "swept", before)


def killed_after_the_commit(journey: Journey) -> None:
    """Killed before the guard is told of the success, and then before the caller gets the answer."""
    journey.act("Killed after the commit: before success() is called, and before the answer")
    for point, told in (("commit", "in_progress"), ("end", "committed")):
        before, token = journey.table(), f"after-{point}"
        process = _start_held(journey, token, point)
        reached = partial(_is_at, journey, token, before.version + 1, told)
        waited = journey.waits(f"the commit, and the write {told}", reached, WRITES_S)
        killed = kill(journey, process)
        seen = journey.table()
        journey.check(
            f"containers killed: {killed}; its write is {told}, its rows are in the table: {before.rows:,} + {ROWS:,}",
            holds=waited is not None and killed > 0 and seen.rows == before.rows + ROWS,
        )
        hold(journey, "write", 0)
        said = journey.invoke(held(journey, token))
        journey.check(
            "the same event again: SUCCESS, the write is committed, and the table is as it was",
            holds=said.state == "SUCCESS"
            and [write["status"] for write in said.document["writes"]] == ["committed"]
            and journey.table() == seen,
        )


def _is_at(journey: Journey, token: str, version: int, status: str) -> bool:
    """Return whether deltalake sees the version, and the checkpoint bucket has the write with the status."""
    if journey.look().version < version:
        return False
    return [write["status"] for write in journey.run_of(token).get("writes", ())] == [status]


def _killed_in_a_write(journey: Journey, token: str, before: TableView) -> None:
    """Invoke a job that hangs, and kill its container when a file of its write is in S3."""
    killed = kill(journey, in_a_write(journey, token))
    after = journey.table()
    journey.check(
        f"containers killed: {killed}; the table is as it was, and beside it lies a file of no version",
        holds=killed > 0 and (len(after.orphans), after.version, after.rows) == (1, before.version, before.rows),
    )


def kill(journey: Journey, process: subprocess.Popen[str]) -> int:
    """Kill the containers of the function, and wait for the command; return how many there were.

    One more than the job's may be there: the service keeps those of earlier events.
    """
    containers = _containers(journey)
    for container in containers:
        journey.here.docker.read("kill", container)
    journey.show(journey.wait_for(process))
    return len(containers)


def in_a_write(journey: Journey, token: str, seconds: int = HUNG_S) -> subprocess.Popen[str]:
    """Invoke a job that hangs; return the command when a file of its write is in S3."""
    process = _start_held(journey, token, "write", seconds)
    journey.waits("the first file of the write", lambda: len(journey.look().orphans) > 0, WRITES_S)
    return process


def _start_held(journey: Journey, token: str, point: str, seconds: int = HUNG_S) -> subprocess.Popen[str]:
    """Invoke a job that hangs at a point."""
    hold(journey, point, seconds)
    event = journey.event_file(held(journey, token))
    return journey.start("invoke", event, "--function", journey.made["InvokeArn"], "--json")


def _containers(journey: Journey) -> tuple[str, ...]:
    return journey.here.containers(function=journey.made["FunctionName"])


def _holds_what_it_held(journey: Journey, when: str, before: TableView) -> None:
    """Check the table against what it was; a settler may have taken its next version for itself."""
    after = journey.table()
    journey.check(
        f"{when} the table holds what it held, and no file of the write is left",
        holds=(after.rows, after.files, after.orphans) == (before.rows, before.files, ()),
    )


def repeat_lands_once(journey: Journey, token: str, before: TableView) -> None:
    """Invoke the same event again, without its pause, and check that its batch is there once, and nothing else."""
    hold(journey, "write", 0)
    said = journey.invoke(held(journey, token))
    journey.check("the same event again: SUCCESS", holds=said.state == "SUCCESS")
    after = journey.table()
    journey.check(
        f"the batch is in the table once: {before.rows:,} + {ROWS:,} rows, and no other file is left",
        holds=(after.rows, after.orphans) == (before.rows + ROWS, ()),
    )
