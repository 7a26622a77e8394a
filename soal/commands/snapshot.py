"""`soal snapshot …`: read and maintain sharded snapshots.

A command imports the snapshot packages only when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from safewriter.snapshots.keep.cleanup import cleanup as clean
from safewriter.snapshots.keep.history import history as history_of
from safewriter.snapshots.keep.history import moment
from safewriter.snapshots.keep.survey import Keeping
from soal.console.problem import EXIT_FAILED
from soal.console.progress import Counting
from soal.options import DryRun
from soal.orphans.age import parse_age
from soal.s3_command import Call, s3_command
from soal.snapshots.arguments import (
    Form,
    context_of,
    key_of,
    reader_of,
    shown_key,
    snapshot_errors_as_problems,
    source_of,
    text_of,
)
from soal.snapshots.build_command import build
from soal.snapshots.report import (
    CleanupReport,
    HealthReport,
    HistoryReport,
    ManifestFound,
    RollbackReport,
    RouteReport,
    SnapshotReport,
    ValueFound,
    ValueReport,
    ValuesReport,
    VerifyReport,
)
from soal.snapshots.views import (
    cleanup_view,
    health_view,
    history_view,
    rollback_view,
    route_view,
    snapshot_view,
    value_view,
    values_view,
    verify_view,
)

app = typer.Typer(no_args_is_help=True, help="Snapshots: data frames as sharded key-value files.")
_on_s3 = s3_command(has_bucket=False, errors=snapshot_errors_as_problems)
app.command()(_on_s3(build))

Prefix = Annotated[str, typer.Argument(metavar="PREFIX", help="Where the snapshots lie: s3://bucket/prefix")]
As = Annotated[Form, typer.Option("--as", help="How values are printed.")]
Context = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="The value of another column that decides on the shard."),
]
HexKey = Annotated[bool, typer.Option("--hex-key", help="Keys are bytes, in hexadecimal digits.")]
Ref = Annotated[str | None, typer.Option("--ref", help="The manifest of another snapshot than the current one: s3://…")]


@app.callback()
def _snapshot() -> None:
    """Snapshots: data frames as sharded key-value files."""


@app.command()
@_on_s3
def info(
    call: Call,
    prefix: Prefix,
    ref: Ref = None,
) -> None:
    """Show a snapshot: its run, its rule, its shards. Exit code 1 if there is none."""
    source = source_of(prefix, call)
    current = source.current()[1]
    named = source.named_in(current, ref)
    manifest = source.manifest(named.ref, named.sha256)
    is_current = named.ref == current.manifest_ref
    call.out.show(snapshot_view(SnapshotReport.of_manifest(prefix, named.ref, manifest, is_current=is_current)))


@app.command()
@_on_s3
def get(
    call: Call,
    prefix: Prefix,
    key: Annotated[str, typer.Argument(help="The key, as text or as an integer.")],
    form: As = "text",
    context: Context = None,
    ref: Ref = None,
    *,
    hex_key: HexKey = False,
) -> None:
    """Print the value of a key. Exit code 1 if the snapshot has no such key."""
    with reader_of(prefix, call, ref) as reader:
        plain_key = key_of(key, reader.manifest.key_encoding, is_hex=hex_key)
        columns = context_of(context or (), reader.manifest)
        value = reader.get(plain_key, routing_context=columns)
        report = ValueReport(
            prefix=prefix,
            manifest_ref=reader.manifest_ref,
            key=shown_key(plain_key),
            shard=reader.route(plain_key, routing_context=columns),
            found=value is not None,
            form=form,
            value=None if value is None else text_of(value, form),
        )
    call.out.show(value_view(report))
    if not report.found:
        call.out.remark(f"the snapshot has no key {key}")
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_on_s3
def multiget(
    call: Call,
    prefix: Prefix,
    keys: Annotated[list[str], typer.Argument(help="The keys, as texts or as integers.")],
    form: As = "text",
    context: Context = None,
    ref: Ref = None,
    *,
    hex_key: HexKey = False,
) -> None:
    """Print the values of several keys of one snapshot. Exit code 1 if it lacks one of them."""
    with reader_of(prefix, call, ref) as reader:
        encoding, columns = reader.manifest.key_encoding, context_of(context or (), reader.manifest)
        plain_keys = [key_of(key, encoding, is_hex=hex_key) for key in keys]
        found = reader.multi_get(plain_keys, routing_context=columns)
        values = tuple(
            ValueFound(
                key=shown_key(key),
                shard=reader.route(key, routing_context=columns),
                found=value is not None,
                value=None if value is None else text_of(value, form),
            )
            for key, value in found.items()
        )
        report = ValuesReport(prefix=prefix, manifest_ref=reader.manifest_ref, form=form, values=values)
    call.out.show(values_view(report))
    missing = [str(value.key) for value in values if not value.found]
    if missing:
        call.out.remark(f"the snapshot has no key {', '.join(missing)}")
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_on_s3
def route(
    call: Call,
    prefix: Prefix,
    key: Annotated[str, typer.Argument(help="The key, as text or as an integer.")],
    context: Context = None,
    ref: Ref = None,
    *,
    hex_key: HexKey = False,
) -> None:
    """Show the shard that a key belongs to, without fetching it. Exit code 1 if no shard can have the key."""
    with reader_of(prefix, call, ref) as reader:
        plain_key = key_of(key, reader.manifest.key_encoding, is_hex=hex_key)
        db_id = reader.route(plain_key, routing_context=context_of(context or (), reader.manifest))
        url = next((shard.db_url for shard in reader.manifest.shards if shard.db_id == db_id), None)
        report = RouteReport(
            prefix=prefix, manifest_ref=reader.manifest_ref, key=shown_key(plain_key), shard=db_id, db_url=url
        )
    call.out.show(route_view(report))
    if db_id is None:
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_on_s3
def health(
    call: Call,
    prefix: Prefix,
    max_age: Annotated[
        str | None, typer.Option(help="The current snapshot must be younger than this, by S3's clock: 7d, 36h, 90m.")
    ] = None,
) -> None:
    """Check that the current snapshot can be read, and that each shard is there with its size. Fetches no shard.

    Exit code 1 if it is not healthy.
    """
    source = source_of(prefix, call)
    limit = None if max_age is None else parse_age(max_age, allow_young=True)
    stored, current = source.current()
    named = source.named_in(current)
    manifest = source.manifest(named.ref, named.sha256)
    at = next((moment(past.at) for past in current.history if past.manifest_ref == named.ref), None)
    report = HealthReport.of_snapshot(
        prefix,
        named.ref,
        manifest,
        tuple(source.damage(manifest.shards)),
        age_s=None if at is None else (stored.server_date - at).total_seconds(),
        max_age_s=None if limit is None else limit.total_seconds(),
    )
    call.out.show(health_view(report))
    if not report.is_healthy:
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_on_s3
def history(
    call: Call,
    prefix: Prefix,
    limit: Annotated[int, typer.Option(min=0, help="Show at most this many, newest first; 0 shows all.")] = 50,
) -> None:
    """List the published snapshots, newest builds first. Exit code 1 if there is none."""
    manifests = history_of(source_of(prefix, call))
    shown_max = limit or len(manifests)
    call.out.show(
        history_view(HistoryReport(prefix=prefix, snapshots=tuple(map(ManifestFound.of, manifests[:shown_max]))))
    )
    if len(manifests) > shown_max:
        call.out.remark(f"{len(manifests) - shown_max} older ones are not shown; --limit 0 shows all")


@app.command()
@_on_s3
def rollback(
    call: Call,
    prefix: Prefix,
    ref: Annotated[str | None, typer.Option("--ref", help="To the snapshot with this manifest: s3://…")] = None,
    run_id: Annotated[str | None, typer.Option(help="To the newest snapshot of this run.")] = None,
    back: Annotated[int | None, typer.Option(min=1, help="To the snapshot this many before the current one.")] = None,
    *,
    forget_token: Annotated[
        bool,
        typer.Option(
            "--forget-token",
            help="Also forget the token of the last turn, the current snapshot's included: it is another lock's.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Make an earlier snapshot current again, if it is complete.

    Exit codes: 0 done, or it is current already; 1 it is missing or incomplete; 75 another snapshot was published
    meanwhile, a clean-up is removing it, or the current snapshot is unknown: see soal snapshot history.
    """
    from safewriter.snapshots.keep.rollback import Target
    from safewriter.snapshots.keep.rollback import rollback as roll_back

    goal = Target(manifest_ref=ref, run_id=run_id, back=back)
    change = roll_back(source_of(prefix, call), goal, dry_run=dry_run, forget_token=forget_token)
    report = RollbackReport(
        prefix=prefix,
        before=change.before,
        after=change.after,
        run_id=change.manifest.run_id,
        changed=change.is_change and not dry_run,
        dry_run=dry_run,
    )
    call.out.show(rollback_view(report))


@app.command()
@_on_s3
def verify(
    call: Call,
    prefix: Prefix,
    ref: Ref = None,
    keys_max: Annotated[
        int | None, typer.Option("--keys", min=1, help="Route this many keys of each shard again; default: all.")
    ] = None,
) -> None:
    """Fetch each shard of a snapshot and compare it with the manifest: size, content, rows, and routing of the keys.

    Exit code 1 if something differs, or the snapshot cannot be read.
    """
    from safewriter.snapshots.read.verification import verify as look

    source = source_of(prefix, call)
    with Counting(call.out.talk, f"looking at {prefix}") as counting:
        verification = look(source, ref, keys_max=keys_max, done=counting.show)
    call.out.show(verify_view(VerifyReport.of_prefix(prefix, verification)))
    if not verification.is_sound:
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_on_s3
def cleanup(
    call: Call,
    prefix: Prefix,
    keep_last: Annotated[int, typer.Option(min=1, help="Keep this many of the newest snapshots.")] = 3,
    older_than: Annotated[
        str, typer.Option(help="Only objects older than this, by S3's clock: 7d, 36h, 90m. Longer than any build.")
    ] = "1d",
    run_registry_prefix: Annotated[str, typer.Option(help="Where builds keep their records.")] = "runs",
    *,
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow --older-than below nine hours. No job may build meanwhile.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove what no kept snapshot needs: older snapshots, shards of losing attempts, unfinished uploads.

    The current snapshot stays, and all objects of running builds. Exit codes: 0 done, 1 the snapshots cannot be judged,
    or something could not be removed.
    """
    age = parse_age(older_than, allow_young=allow_young)
    source = source_of(prefix, call)
    with Counting(call.out.talk, f"looking at {prefix}") as counting:
        keeping = Keeping(last=keep_last, age=age, run_registry_prefix=run_registry_prefix)
        report = clean(source, keeping, dry_run=dry_run, seen=counting.show)
    call.out.show(cleanup_view(CleanupReport.of_prefix(prefix, report)))
    if report.has_failed:
        raise typer.Exit(EXIT_FAILED)
    if dry_run:
        call.out.remark("nothing was changed")
