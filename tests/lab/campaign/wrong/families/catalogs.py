"""Tables by the name of the wrong catalog, or of none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter import SafeWriter
from tests.lab.campaign.wrong.script import BOTH, ICEBERG, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob


def _again(job: WrongJob, name: str) -> str:
    """Register the script's catalog under another name, and return the table's name there."""
    own, _, table = job.table.partition(".")
    prefix = f"spark.sql.catalog.{own}"
    for key in ("", ".type", ".uri", ".jdbc.schema-version", ".warehouse", ".io-impl"):
        job.spark.conf.set(f"spark.sql.catalog.{name}{key}", str(job.spark.conf.get(f"{prefix}{key}")))
    return f"{name}.{table}"


def _hadoop(job: WrongJob) -> str:
    """Create the same table in a Hadoop catalog, and return its name."""
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": job.lake}.items():
        job.spark.conf.set(f"spark.sql.catalog.files{key}", value)
    job.spark.sql("CREATE TABLE IF NOT EXISTS files.db.t (id LONG) USING iceberg")
    return "files.db.t"


@script(formats=ICEBERG)
def table_that_is_not_there(job: WrongJob) -> None:
    """The guard gets a name that the catalog does not know."""
    with job.guard(f"{job.table}_") as sw:
        job.append(sw.table)
        sw.success()


@script(formats=ICEBERG)
def another_name_of_the_catalog(job: WrongJob) -> None:
    """The session knows the catalog by two names; the block uses one, and the statement the other."""
    other = _again(job, "again")
    with job.guard() as sw:
        job.append(other)
        sw.success()


@script(formats=ICEBERG)
def hadoop_catalog(job: WrongJob) -> None:
    """The guard gets a table of a Hadoop catalog instead of the script's own catalog."""
    with job.guard(_hadoop(job)) as sw:
        job.append(sw.table)
        sw.success()


@script(formats=ICEBERG)
def written_in_a_hadoop_catalog(job: WrongJob) -> None:
    """The statement names a table of a Hadoop catalog instead of the block's."""
    other = _hadoop(job)
    with job.guard() as sw:
        job.append(other)
        sw.success()


@script(formats=ICEBERG)
def name_without_a_catalog(job: WrongJob) -> None:
    """The guard gets a name without a catalog, after USE."""
    catalog, _, name = job.table.partition(".")
    job.spark.sql(f"USE {catalog}")
    with job.guard(name) as sw:
        job.append(sw.table)
        sw.success()


@script(formats=ICEBERG)
def format_forgotten(job: WrongJob) -> None:
    """The guard has Delta's format, and gets the name of an Iceberg table."""
    with SafeWriter(job.spark, job.table) as sw:
        job.append(sw.table)
        sw.success()


@script()
def iceberg_for_a_path(job: WrongJob) -> None:
    """The guard has Iceberg's format, and gets the path of a Delta table."""
    with SafeWriter(job.spark, job.table, format="iceberg") as sw:
        job.append(sw.table)
        sw.success()


@script(short=("delta",))
def format_that_guards_nothing(job: WrongJob) -> None:
    """The guard has the format of a build of snapshots, and the block appends to a Delta table."""
    with SafeWriter(job.spark, job.table, format="snapshot") as sw:
        job.append(job.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def table_that_is_cached(job: WrongJob) -> None:
    """The session has cached the table before its block: unusual, and right."""
    frame = job.spark.table(job.named(job.table)).cache()
    frame.count()
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
    job.count(job.table)


@script(formats=ICEBERG)
def session_that_stages(job: WrongJob) -> None:
    """The session stages all its writes on a branch, by a setting that changes in the block."""
    job.spark.sql(f"ALTER TABLE {job.table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    with job.guard() as sw:
        job.spark.conf.set("spark.wap.branch", "audit")
        try:
            job.append(sw.table)
            sw.success()
        finally:
            job.spark.conf.unset("spark.wap.branch")
