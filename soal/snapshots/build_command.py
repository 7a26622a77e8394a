"""`soal snapshot build`: a snapshot from files or a table, with Spark on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from safewriter.snapshots.config import Duplicates, OutputOptions, WriteConfig
from safewriter.snapshots.format.encoding import KeyEncoding
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.console.progress import Counting
from soal.home import Home
from soal.options import EndpointUrl, Json, Local
from soal.snapshots.asking import problems
from soal.snapshots.building import pairs_of, sharding_of, value_spec_of
from soal.snapshots.report import BuildReport
from soal.snapshots.session import Format, frame_of, spark_on
from soal.snapshots.views import build_view
from soal.target import asking, target

__all__ = ["build"]


def build(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Where the snapshots lie: s3://bucket/prefix")],
    path: Annotated[list[str], typer.Option("--from", help="Files, folder or table to read; may be repeated.")],
    key: Annotated[str, typer.Option(help="The column of the keys.")],
    *,
    value: Annotated[
        str | None,
        typer.Option(help="The column of the values, bytes or text; default: all columns but the key, as JSON."),
    ] = None,
    json_column: Annotated[
        list[str] | None, typer.Option(help="Instead of --value: a column of the values as JSON; may be repeated.")
    ] = None,
    source_format: Annotated[Format, typer.Option("--format", help="The format of what is read.")] = "parquet",
    read_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of Spark's reader, as delimiter=';'; may be repeated."),
    ] = None,
    num_dbs: Annotated[int | None, typer.Option(min=1, help="The number of shards.")] = None,
    max_keys_per_shard: Annotated[
        int | None, typer.Option(min=1, help="Instead of --num-dbs: as many shards as the rows need.")
    ] = None,
    key_encoding: Annotated[
        KeyEncoding, typer.Option(help="How the shards store keys: integers as u64be or u32be, text as utf8, or raw.")
    ] = KeyEncoding.U64BE,
    cel: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help="Instead of the key's hash: the rule that gives a shard.")
    ] = None,
    cel_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TYPE", help="A column of --cel: int, uint, string, …; may be repeated."),
    ] = None,
    infer_routing_values: Annotated[
        bool, typer.Option("--infer-routing-values", help="Each value that --cel gives for the data has a shard.")
    ] = False,
    duplicates: Annotated[Duplicates, typer.Option(help="What happens to rows of one key.")] = Duplicates.ERROR,
    last_by: Annotated[
        str | None, typer.Option(help="With --duplicates last: the row stays with the highest value in this column.")
    ] = None,
    run_id: Annotated[str | None, typer.Option(help="A name for the run; default: a random one.")] = None,
    endpoint_url: EndpointUrl = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Build a snapshot with Spark on this machine, and make it current.

    Exit codes: 0 published, 1 failed and nothing was published, 2 usage, 75 another build was faster, or nobody
    knows whether it is current: see soal snapshot history.
    """
    out = Output(as_json=as_json)
    found = target(endpoint_url, Home.of(), local=local)
    with problems():
        from safewriter.snapshots.write.build import write_sharded

        read_options = pairs_of("--read-option", "NAME=VALUE", read_option or ())
        values = value_spec_of(value, json_column or ())
        config = WriteConfig(
            num_dbs=num_dbs,
            sharding=sharding_of(max_keys_per_shard, cel, cel_column or (), infer_routing_values=infer_routing_values),
            s3_prefix=prefix,
            key_encoding=key_encoding,
            duplicates=duplicates,
            last_by=last_by,
            output=OutputOptions(run_id=run_id),
        )
    with problems(), asking(), Counting(out.talk, f"building {prefix}"), spark_on(found, Home.of()) as spark:
        try:
            frame = frame_of(spark, path, source_format, read_options)
            result = write_sharded(frame, config, key_col=key, value_spec=values)
        except _spark_errors() as error:
            raise Problem(
                f"nothing was published: {_first_line(error)}",
                todo="correct the path, the columns or the rows",
                exit_code=EXIT_FAILED,
            ) from error
    report = BuildReport(
        prefix=prefix,
        run_id=result.run_id,
        manifest_ref=result.manifest_ref,
        shards=len(result.shards),
        rows_read=result.stats.rows_read,
        rows_written=result.stats.rows_written,
        bytes=sum(shard.db_bytes for shard in result.shards),
        write_ms=result.stats.write_ms,
        publish_ms=result.stats.publish_ms,
    )
    out.show(build_view(report))


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
