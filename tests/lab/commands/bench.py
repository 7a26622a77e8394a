"""`scripts/lab bench …`: measure the cost of the guard, a turn, a snapshot, cold and warm starts on this machine.

Each command imports its benchmark when called: emulators and engines take seconds to import.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields
from pathlib import Path  # noqa: TC003 - Typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from handler.spark.missing_dependencies import SLIM, Variant
from scripts.image.build import TAG, tag_of
from scripts.image.docker import require, with_docker
from scripts.image.size import size_view
from scripts.local.function import Function, function_variables, home_of_variant
from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.view import View, columns
from soal.home import Home
from soal.options import Json
from soal.target import local_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from _typeshed import DataclassInstance

    from tests.lab.bench.fanout import FanoutRow
    from tests.lab.bench.guard import GuardCost
    from tests.lab.bench.locks import LocksCost
    from tests.lab.bench.scale import ScaleRow
    from tests.lab.bench.snapshot import SnapshotCost
    from tests.lab.bench.start import StartCost
    from tests.lab.bench.trace import ColdRun
    from tests.lab.bench.variants import VariantsCost
    from tests.lab.bench.warm import WarmCost

    Cost = StartCost | VariantsCost | WarmCost

__all__ = ["app", "told"]


class _Recorded:
    """The file for this command's figures, and the words after `scripts/lab bench`."""

    path: Path | None = None
    command: list[str]


_recorded: Final = _Recorded()

app = typer.Typer(no_args_is_help=True, help="Measure, each pair side by side in one run.")


@app.callback()
def _bench(
    context: typer.Context,
    record: Annotated[
        Path | None, typer.Option(help="Add the figures to this file, a line of JSON for each benchmark.")
    ] = None,
) -> None:
    """Measure, each pair side by side in one run."""
    _recorded.path = record
    name = str(context.invoked_subcommand)
    words = sys.argv[sys.argv.index(name) :] if name in sys.argv else [name]  # the context no longer holds them
    _recorded.command = [word for word in words if word != "--json"]


@app.command()
def guard(
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Pairs of a plain and a guarded append.")] = 20,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each append.")] = 22_248,
    lake_format: Annotated[
        list[str] | None, typer.Option("--format", help="delta or iceberg; may be given again; default: both.")
    ] = None,
    latency_ms: Annotated[
        list[int] | None,
        typer.Option(min=0, max=10_000, help="How long S3 takes more; may be given again; default: 0, 30, 100."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Measure the time that SafeWriter adds to an append in a warm session, on an embedded S3."""
    from tests.lab.bench import guard as guard_bench

    formats = lake_format or guard_bench.FORMATS
    if unknown := sorted(set(formats) - set(guard_bench.FORMATS)):
        raise Problem(f"there is no format {unknown[0]!r}", todo=f"name one of: {', '.join(guard_bench.FORMATS)}")
    latencies = latency_ms or [0, 30, 100]
    out = Output(as_json=as_json)
    with _progress(out, "pairs", rounds * len(formats) * len(latencies)) as done:
        cost = guard_bench.measure(rounds, rows, formats, latencies, done)
    told(out, _guard(cost))


@app.command()
def locks(
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of all services, one after the other.")] = 5,
    turns: Annotated[int, typer.Option(min=1, max=1000, help="Turns of each service in a round.")] = 32,
    contenders: Annotated[
        list[int] | None,
        typer.Option(min=1, max=50, help="How many jobs want the lock; may be given again; default: 1, 16, 50."),
    ] = None,
    service: Annotated[
        list[str] | None, typer.Option(help="Only this service, as the table names it; may be given again.")
    ] = None,
    poll_s: Annotated[float, typer.Option(min=0.001, help="How often a job that waits asks, in seconds.")] = 0.5,
    *,
    as_json: Json = False,
) -> None:
    """Measure turns at a lock on each lock service, alone and with contenders, beside kazoo's own Lock."""
    from tests.lab.bench import lock_services
    from tests.lab.bench import locks as locks_bench

    names = service or lock_services.NAMES
    if unknown := sorted(set(names) - set(lock_services.NAMES)):
        raise Problem(f"there is no service {unknown[0]!r}", todo=f"name one of: {', '.join(lock_services.NAMES)}")
    out = Output(as_json=as_json)
    with _progress(out, "rounds", rounds) as done:
        cost = locks_bench.measure(rounds, turns, tuple(contenders or (1, 16, 50)), names, poll_s, done)
    told(out, _locks(cost))
    for one in cost.skipped:
        out.remark(one)


@app.command()
def scale(
    part: Annotated[
        Literal["rows", "writers"] | None, typer.Option("--only", help="Only this part; default: both.")
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Rows of an append; may be given again; default: 10,000 to 10,000,000 in tens."),
    ] = None,
    memory_mb: Annotated[
        list[int] | None,
        typer.Option(min=1024, max=10240, help="The function's memory; may be given again; default: 1,769 and 10,240."),
    ] = None,
    writers: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=64, help="Processes, each with a Spark: 600 MB; may be given again; default: 2, 4 and 8."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Pairs of appends, and rounds of several writers.")] = 3,
    lake_format: Annotated[
        list[str] | None, typer.Option("--format", help="delta or iceberg; may be given again; default: both.")
    ] = None,
    catalog: Annotated[
        Literal["sqlite", "rest"], typer.Option(help="Where the Iceberg table of several writers is.")
    ] = "sqlite",
    latency_ms: Annotated[
        int, typer.Option(min=0, max=10_000, help="How long S3 takes more where several processes append.")
    ] = 30,
    *,
    docker: Annotated[
        bool, typer.Option("--docker", help="Hold each session to the function's memory by a container.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure appends of many rows in little and much memory, and of several processes to one table."""
    from tests.lab.bench import fanout as fanout_bench
    from tests.lab.bench import scale as scale_bench

    formats = lake_format or scale_bench.FORMATS
    if unknown := sorted(set(formats) - set(scale_bench.FORMATS)):
        raise Problem(f"there is no format {unknown[0]!r}", todo=f"name one of: {', '.join(scale_bench.FORMATS)}")
    counts, sizes, numbers = rows or scale_bench.ROWS, memory_mb or scale_bench.MEMORY_MB, writers or [2, 4, 8]
    out = Output(as_json=as_json)
    by_rows: tuple[ScaleRow, ...] = ()
    by_writers: tuple[FanoutRow, ...] = ()
    if part != "writers":
        with (
            with_docker(Home.of()) if docker else nullcontext() as daemon,
            _progress(out, "pairs", rounds * len(counts) * len(sizes) * len(formats)) as done,
        ):
            by_rows = scale_bench.measure(counts, sizes, formats, rounds, daemon, done)
    if part != "rows":
        with _progress(out, "rounds of writers", rounds * len(numbers) * len(formats)) as done:
            by_writers = fanout_bench.measure(formats, catalog, numbers, rounds, latency_ms, done)
    found = {"rows": [asdict(row) for row in by_rows], "writers": [asdict(row) for row in by_writers]}
    told(out, View(found, tuple(_rows(part) for part in (by_rows, by_writers) if part)))


@app.command()
def settle(
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Dead writes of each kind.")] = 20,
    *,
    small: Annotated[bool, typer.Option("--small", help="Leave out the long logs and the large tables.")] = False,
    as_json: Json = False,
) -> None:
    """Measure the time of a verdict on a dead write without Java, on either format, on small and large tables, on
    SeaweedFS.
    """
    from tests.lab.bench import settle_delta, settle_iceberg

    out = Output(as_json=as_json)
    sizes = 1 if small else 2
    with _progress(out, "kinds of write on Delta", 2 * sizes) as done:
        delta = settle_delta.measure_delta(rounds, (10, 10_000)[:sizes], (100, 100_000)[:sizes], done)
    with _progress(out, "tables of Iceberg", 1 if small else 3) as done:
        iceberg = settle_iceberg.measure_iceberg(rounds, (1,) if small else (1, 1_000, 10_000), done)
    rows = {"delta": [asdict(row) for row in delta], "iceberg": [asdict(row) for row in iceberg]}
    told(out, View(rows, (_rows(delta), _rows(iceberg))))


@app.command()
def snapshot(
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="Rows; may be given again; default: 100,000 and 1,000,000.")
    ] = None,
    shards: Annotated[list[int] | None, typer.Option(min=1, help="May be given again; default: 1, 8, 64.")] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of builds and of the bare loop.")] = 4,
    reads: Annotated[int, typer.Option(min=100, help="Reads of each kind of each snapshot.")] = 20_000,
    *,
    as_json: Json = False,
) -> None:
    """Measure builds of snapshots beside a bare loop that inserts into SQLite, and reads, on an embedded S3."""
    from tests.lab.bench import snapshot as snapshot_bench

    sizes = rows or [100_000, 1_000_000]
    out = Output(as_json=as_json)
    with _progress(out, "rounds", rounds * len(sizes)) as done:
        cost = snapshot_bench.measure(sizes, shards or (1, 8, 64), rounds, reads, done)
    told(out, _snapshots(cost))


@app.command("snapshot-beside")
def snapshot_beside(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of each build.")] = 1_000_000,
    shards: Annotated[int, typer.Option(min=1, help="Shards of each build.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of all builds, after a smaller one.")] = 3,
    peer: Annotated[
        str | None,
        typer.Option(
            envvar="SHARDYFUSION",
            help="A checkout of shardyfusion with its packages, as in PYTHONPATH: also build by its writer.",
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Measure incremental builds of snapshots, and shardyfusion's, beside a full build, on an embedded S3."""
    from tests.lab.bench import snapshot_beside as beside

    out = Output(as_json=as_json)
    with _progress(out, "rounds", rounds) as done:
        cost = beside.measure_beside(rows, shards, rounds, peer, done)
    told(out, View([asdict(row) for row in cost], (_rows(cost),)))


@app.command()
def start(
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Pairs of runs: one with aws-samples, one with SoAL.")
    ] = 5,
    *,
    docker: Annotated[bool, typer.Option("--docker", help="Run both in containers, not on the host.")] = False,
    job: Annotated[
        Literal["append", "sql", "heavy"],
        typer.Option(help="The sample job, a query without a table, or half a million rows aggregated and written."),
    ] = "append",
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Run the sample job once instead, and write where its time goes into a folder: cold.jsonl, cold.svg."
        ),
    ] = None,
    image: Annotated[str, typer.Option(help="With --docker: the image's name.")] = TAG,
    memory_mb: Annotated[int, typer.Option(min=1024, max=10240, help="Our function's memory.")] = 3008,
    timeout_s: Annotated[
        int, typer.Option(min=1, max=900, help="Our function's timeout; it also decides SOAL_JIT.")
    ] = 60,
    as_json: Json = False,
) -> None:
    """Measure the time of a cold run of the sample job, with SoAL and with aws-samples/spark-on-aws-lambda."""
    from tests.lab.bench import start as start_bench

    name = image if docker else None
    function = _function(timeout_s, memory_mb, name)
    if trace is not None:
        _trace(name, function, trace, as_json=as_json)
        return
    _show("pairs", rounds, lambda progress: start_bench.measure(rounds, name, function, job, progress), as_json=as_json)


def _trace(
    image: str | None, function: Callable[[Mapping[str, str]], Function], folder: Path, *, as_json: bool
) -> None:
    from tests.lab.bench import trace as trace_bench
    from tests.lab.bench.picture import waterfall
    from tests.lab.bench.record import about

    out = Output(as_json=as_json)
    run = trace_bench.measure(image, function)
    whence = about()
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{line}\n" for line in trace_bench.lines_of(run, whence))
    (folder / "cold.jsonl").write_text(lines, encoding="utf-8")
    (folder / "cold.svg").write_text(waterfall(run, whence), encoding="utf-8")
    told(out, _phases(run))
    out.remark(f"wrote {folder / 'cold.jsonl'} and {folder / 'cold.svg'}")


@app.command()
def warm(
    jobs: Annotated[int, typer.Option(min=1, max=10_000, help="Warm jobs, one after the other.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Cold runs with aws-samples among them.")] = 4,
    *,
    memory_mb: Annotated[int, typer.Option(min=1024, max=10240, help="Our function's memory.")] = 3008,
    timeout_s: Annotated[
        int, typer.Option(min=1, max=900, help="Our function's timeout; it also decides SOAL_JIT.")
    ] = 60,
    as_json: Json = False,
) -> None:
    """Measure the sample job in the JVM of the job before, beside a cold run of aws-samples."""
    from tests.lab.bench import warm as warm_bench

    function = _function(timeout_s, memory_mb, None)
    _show("jobs", jobs, lambda progress: warm_bench.measure(jobs, rounds, function, progress), as_json=as_json)


@app.command()
def restored(
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Rounds of a cold job, one in a copy, and two in two copies.")
    ] = 5,
    warm_ups: Annotated[int, typer.Option(min=1, max=100, help="Guarded jobs before the snapshot.")] = 16,
    *,
    criu: Annotated[str, typer.Option(help="CRIU 4.2 or newer (github.com/checkpoint-restore/criu).")] = "criu",
    as_json: Json = False,
) -> None:
    """Measure the first guarded row of a Spark that is copied from a memory snapshot. Needs root, runc and CRIU."""
    from tests.lab.bench import containers
    from tests.lab.bench import restored as restored_bench

    if problem := containers.problem(criu):
        raise Problem(problem, todo="as root, build CRIU 4.2 and install runc and iproute2; name it with --criu")
    out = Output(as_json=as_json)
    with _progress(out, "rounds", rounds) as done:
        cost = restored_bench.measure(criu, rounds, warm_ups, done)
    told(out, View({"rows": [asdict(row) for row in cost]}, (_rows(cost),)))


@app.command()
def variants(
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Pairs of cold runs.")] = 5,
    *,
    docker: Annotated[bool, typer.Option("--docker", help="Run the images, not the working tree.")] = False,
    memory_mb: Annotated[int, typer.Option(min=1024, max=10240, help="The function's memory.")] = 3008,
    timeout_s: Annotated[int, typer.Option(min=1, max=900, help="The function's timeout.")] = 60,
    as_json: Json = False,
) -> None:
    """Measure a cold run of the sample job on the image's variant full beside one on slim."""
    from tests.lab.bench import variants as variants_bench

    slim, full = (
        _function(timeout_s, memory_mb, tag_of(variant) if docker else None, variant) for variant in get_args(Variant)
    )
    _show(
        "pairs",
        rounds,
        lambda progress: variants_bench.measure(rounds, slim, full, progress),
        as_json=as_json,
    )


@app.command()
def floor(
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of all ways, one after the other.")] = 5,
    *,
    as_json: Json = False,
) -> None:
    """Measure the sample append without a function: stock spark-submit, and deltalake and pyiceberg without a JVM."""
    from tests.lab.bench import floor as floor_bench

    out = Output(as_json=as_json)
    with _progress(out, "rounds", rounds) as done:
        found = floor_bench.measure(rounds, done)
    told(out, View({"rows": [asdict(row) for row in found]}, (_rows(found),)))


@app.command("image")
def image_size(
    name: Annotated[str, typer.Option("--image", help="The image's name.")] = TAG, *, as_json: Json = False
) -> None:
    """Measure the size of the image above its base, by layer and by part."""
    from scripts.image.size import measure as measure_size

    out = Output(as_json=as_json)
    with with_docker(Home.of()) as docker:
        require(docker, name)
        size = measure_size(docker, name)
    told(out, size_view(size))


def _function(
    timeout_s: int, memory_mb: int, image: str | None, variant: Variant = SLIM
) -> Callable[[Mapping[str, str]], Function]:
    """Return a factory of SoAL's function, given the variables that reach an S3; `variant`: on the host."""
    home = Home.of()
    here = None if image else home_of_variant(home, variant)

    def made(aws: Mapping[str, str]) -> Function:
        variables = function_variables(local_target(aws["AWS_ENDPOINT_URL_S3"]), None, aws, here, variant)
        python = None if here is None else here.python
        return Function(variables, timeout_s, memory_mb, home, image=image, python=python)

    return made


def told(out: Output, view: View) -> None:
    """Show the command's figures, and record them if `scripts/lab bench --record` names a file."""
    if _recorded.path is not None:
        from tests.lab.bench.record import append

        append(_recorded.path, _recorded.command, view.document)
    out.show(view)


def _show(what: str, rounds: int, measure: Callable[[Callable[[int], None]], Cost], *, as_json: bool) -> None:
    """Measure, with progress on a terminal, and show the figures; `measure` reports the number of rounds done."""
    out = Output(as_json=as_json)
    with _progress(out, what, rounds) as done:
        cost = measure(done)
    told(out, _figures(cost))


@contextmanager
def _progress(out: Output, what: str, rounds: int) -> Iterator[Callable[[int], None]]:
    with Progress(console=out.talk, transient=True, disable=not out.talk.is_terminal) as progress:
        task = progress.add_task(what, total=rounds)
        yield lambda done: progress.update(task, completed=done)


def _figures(cost: Cost) -> View:
    table = Table(box=None, show_header=False)
    for name, value in asdict(cost).items():
        table.add_row(name.replace("_", " "), _figure(value))
    return View(asdict(cost), (table,))


def _guard(cost: GuardCost) -> View:
    added = Table(box=None, show_header=False)
    for lake_format, count in cost.requests.items():
        added.add_row(f"requests added, {lake_format}", str(count))
    return View(asdict(cost), (_rows(cost.figures), added))


def _locks(cost: LocksCost) -> View:
    return View(asdict(cost), (_rows(cost.rows),))


def _snapshots(cost: SnapshotCost) -> View:
    return View(asdict(cost), (_rows(cost.builds), _rows(cost.reads)))


def _phases(run: ColdRun) -> View:
    names = ("phase", "of", "from ms", "ms", "requests", *run.classes)
    table = columns(*names, right=names[2:])
    for one in run.phases:
        spans = (f"{one.began_ms:,.0f}", f"{one.ended_ms - one.began_ms:,.0f}")
        table.add_row(one.name, one.who, *spans, str(one.requests), *(str(one.classes.get(n, 0)) for n in run.classes))
    whole = ("", f"{run.total_ms:,.0f}", str(len(run.requests)), *(f"{n:,}" for n in run.classes.values()))
    table.add_row("all", "", *whole, style="bold")
    cpu = ", ".join(f"{who} {used_s:.2f}" for who, used_s in run.cpu_s.items())
    words = (
        f"CPU seconds: {cpu}. The init phase ended after {run.initialised_ms:,.0f} ms. Columns at the right: classes."
    )
    return View(asdict(run), (table, Text(words)))


def _rows(found: Sequence[DataclassInstance]) -> Table:
    names = [one.name for one in fields(found[0])] if found else []
    table = columns(*(name.replace("_", " ") for name in names))
    for row in found:
        table.add_row(*(_figure(value) for value in asdict(row).values()))
    return table


def _figure(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
