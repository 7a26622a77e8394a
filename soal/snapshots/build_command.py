"""`soal snapshot build`: build a snapshot from files or a table, with Spark started by this process.

The session has the image's settings and jars, and uses the command's S3.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import boto3
import typer

from handler.spark.classpath import jars
from safewriter.environment import variables_set
from safewriter.snapshots.config import Duplicates, OutputOptions, WriteConfig
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.metrics import MetricEvent
from safewriter.snapshots.sharding import ShardingSpec, ShardingStrategy
from soal.console.problem import Failure, Problem
from soal.console.progress import Counting, print_line
from soal.home import Home, pyspark_of
from soal.s3_command import Call  # noqa: TC001 - typer evaluates the annotations of a command
from soal.shipped import local_settings
from soal.snapshots.report import BuildReport
from soal.snapshots.views import build_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console

    from safewriter.snapshots.write.values import ValueSpec
    from soal.target import Target

Format = Literal["parquet", "csv", "delta", "json"]
_DEFAULT_REGION: Final = "us-east-1"
_LINE_MAX: Final = 1 << 16
_END_S: Final = 60.0


def value_spec_of(value: str | None, json_columns: Sequence[str]) -> ValueSpec:
    """Return the values: a column, columns as JSON, or all but the key as JSON. Raises `ConfigValidationError`."""
    from safewriter.snapshots.write.values import binary_col, json_cols  # that package needs Spark

    if value is None:
        return json_cols(json_columns or None)
    if json_columns:
        raise ConfigValidationError("--value and --json-column name two kinds of values; leave one of them out")
    return binary_col(value)


def sharding_of(
    max_keys_per_shard: int | None, cel: str | None, cel_columns: Sequence[str], *, infer_routing_values: bool
) -> ShardingSpec:
    """Return the sharding rule: by hash, or by CEL over `NAME=TYPE` columns. Raises `ConfigValidationError`."""
    columns = pairs_of("--cel-column", "NAME=TYPE", cel_columns)
    return ShardingSpec(
        strategy=ShardingStrategy.HASH if cel is None else ShardingStrategy.CEL,
        max_keys_per_shard=max_keys_per_shard,
        cel_expr=cel,
        cel_columns=columns,
        infer_routing_values_from_data=infer_routing_values,
    )


def pairs_of(option: str, form: str, pairs: Sequence[str]) -> dict[str, str]:
    """Parse an option's `name=value` pairs. Raises `ConfigValidationError`."""
    values = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigValidationError(f"{option} {pair} is not {form}")
        values[name] = value
    return values


@contextmanager
def spark_on(target: Target, home: Home, talk: Console) -> Iterator[SparkSession]:
    """Start Spark with a thread for each core, on the target's S3. The build's own S3 requests use it, too.

    The output of Java and its tasks goes to `talk`, as untrusted text: it may quote rows.
    """
    spark_home = pyspark_of(home.path)
    if spark_home is None:
        raise Problem("PySpark is not installed", todo="install it with: scripts/setup")
    # The tasks need the packages of this Python.
    with variables_set({**_aws(target), "PYSPARK_PYTHON": sys.executable}):
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        settings = _settings(target, ":".join(str(jar) for jar in jars(spark_home, home.path)))
        conf = SparkConf().setMaster("local[*]").setAppName("soal snapshot build").setAll(list(settings.items()))
        with heard(talk) as pipe, ExitStack() as stack:
            gateway = launch_gateway(conf, {"stdout": pipe, "stderr": pipe})
            stack.callback(_end, gateway)
            spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
            stack.callback(spark.stop)
            yield spark


def _end(gateway: Any) -> None:  # noqa: ANN401 - a gateway of PySpark's
    """Close Java's input, at which it ends, and wait, so that all its output is read."""
    gateway.shutdown()
    if gateway.proc is None:  # this process has not started Java
        return
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()


@contextmanager
def heard(talk: Console) -> Iterator[int]:
    """Yield a file descriptor for the output of processes that end within the block; print its lines to `talk`."""
    output, pipe = os.pipe()

    def read() -> None:
        with os.fdopen(output, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(_LINE_MAX):
                print_line(talk, line.rstrip("\n"))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield pipe
    finally:
        os.close(pipe)
        reader.join(_END_S)


def frame_of(
    spark: SparkSession, paths: list[str], form: Format, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read files or a table; CSV with a header and inferred types. `options` are Spark's reader options."""
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.options(header=True, inferSchema=True)
    reader = reader.options(**(options or {}))
    if form == "delta" and len(paths) > 1:
        raise Problem("a Delta table is one path", todo="build from one table")
    return reader.load(paths[0] if form == "delta" else paths)


def _settings(target: Target, class_path: str) -> dict[str, str]:
    settings = {
        **local_settings(),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    if target.endpoint is not None:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": target.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": target.aws["AWS_REGION"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(target.endpoint.startswith("https")).lower(),
        }
    return settings


def _aws(target: Target) -> dict[str, str]:
    """Return variables with the S3 credentials for Java and the tasks, which do not read the caller's profile."""
    if target.endpoint is not None:
        return dict(target.aws)
    target.client()  # raises Problem without credentials
    session = boto3.session.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise AssertionError  # for the type checker
    frozen = credentials.get_frozen_credentials()
    region = session.region_name or _DEFAULT_REGION
    variables = {
        "AWS_ACCESS_KEY_ID": frozen.access_key,
        "AWS_SECRET_ACCESS_KEY": frozen.secret_key,
        "AWS_SESSION_TOKEN": frozen.token,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
    }
    return {name: value for name, value in variables.items() if value}


class _Stored:
    """Shows how many shards are stored."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting

    def emit(self, event: MetricEvent, payload: dict[str, Any]) -> None:
        if event is MetricEvent.SHARDS_PROGRESS:
            self._counting.show(payload["shards"])


def build(
    call: Call,
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
    source_format: Annotated[Format, typer.Option("--format", help="The format of the files or table.")] = "parquet",
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
    incremental: Annotated[
        bool,
        typer.Option("--incremental", help="Write only shards whose rows have changed; take the others over by name."),
    ] = False,
    run_id: Annotated[str | None, typer.Option(help="A name for the run; default: a random one.")] = None,
) -> None:
    """Build a snapshot with Spark on this machine, and make it current.

    Exit codes: 0 published, 1 failed and nothing was published, 2 usage, 75 another build published first, or the
    current snapshot is unknown: see soal snapshot history.
    """
    from safewriter.snapshots.write.build import write_sharded

    read_options = pairs_of("--read-option", "NAME=VALUE", read_option or ())
    values = value_spec_of(value, json_column or ())
    counting = Counting(call.out.talk, f"building {prefix}", unit="shards")
    config = WriteConfig(
        num_dbs=num_dbs,
        sharding=sharding_of(max_keys_per_shard, cel, cel_column or (), infer_routing_values=infer_routing_values),
        s3_prefix=prefix,
        key_encoding=key_encoding,
        duplicates=duplicates,
        last_by=last_by,
        incremental=incremental,
        output=OutputOptions(run_id=run_id),
        metrics_collector=_Stored(counting),
    )
    with counting, spark_on(call.target, call.home, call.out.talk) as spark:
        try:
            frame = frame_of(spark, path, source_format, read_options)
            result = write_sharded(frame, config, key_col=key, value_spec=values)
        except _spark_errors() as error:
            raise Failure(
                f"nothing was published: {_first_line(error)}",
                todo="correct the path, the columns or the rows",
            ) from error
    report = BuildReport(
        prefix=prefix,
        run_id=result.run_id,
        manifest_ref=result.manifest_ref,
        shards=len(result.shards),
        taken_over=result.taken_over,
        rows_read=result.stats.rows_read,
        rows_written=result.stats.rows_written,
        bytes=sum(shard.db_bytes for shard in result.shards),
        write_ms=result.stats.write_ms,
        publish_ms=result.stats.publish_ms,
    )
    call.out.show(build_view(report))


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
