"""Rows that go elsewhere than to the guarded table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, ICEBERG, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob


@script(short=("delta",))
def save_as_table(job: WrongJob) -> None:
    """It names a table that only the function's own catalog knows, as is usual on Glue and EMR."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("append").saveAsTable("orders_clean")
        sw.success()


@script(formats=BOTH)
def save_as_table_without_a_format(job: WrongJob) -> None:
    """It leaves out the format, so Spark writes Parquet into its warehouse."""
    with job.guard() as sw:
        job.frame().write.mode("append").saveAsTable("orders_clean")
        sw.success()


@script()
def create_table_as_select(job: WrongJob) -> None:
    """It makes a table of the function's own catalog in SQL."""
    with job.guard() as sw:
        job.frame().createOrReplaceTempView("batch")
        job.spark.sql("CREATE TABLE orders_clean USING delta AS SELECT * FROM batch")
        sw.success()


@script()
def write_to_a_new_table(job: WrongJob) -> None:
    """It makes such a table by the newer API."""
    with job.guard() as sw:
        job.frame().writeTo("orders_clean").using("delta").createOrReplace()
        sw.success()


@script(formats=BOTH)
def parquet_on_this_machine(job: WrongJob) -> None:
    """It writes a report to the function's own disk instead of the table."""
    with job.guard() as sw:
        job.frame().write.mode("append").parquet(f"{job.folder}/report")
        sw.success()


@script()
def delta_on_this_machine(job: WrongJob) -> None:
    """It takes a path of another cluster, where a bucket is mounted."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("append").save(f"{job.folder}/mnt/lake/orders")
        sw.success()


@script(short=("delta",))
def parquet_into_the_table(job: WrongJob) -> None:
    """It writes Parquet files into the folder of the Delta table, where no reader looks."""
    with job.guard() as sw:
        job.frame().write.mode("append").parquet(sw.table)
        sw.success()


@script()
def text_into_the_table(job: WrongJob) -> None:
    """It writes by RDD into the folder of the table."""
    with job.guard() as sw:
        job.spark.sparkContext.parallelize(["10", "11"], 1).saveAsTextFile(f"{sw.table}/new-{job.attempt}")
        sw.success()


@script(formats=ICEBERG)
def parquet_into_the_iceberg_table(job: WrongJob) -> None:
    """It writes Parquet files into the Iceberg table's data folder, unknown to its metadata."""
    with job.guard() as sw:
        job.frame().write.mode("append").parquet(f"{job.lake}/db/t/data")
        sw.success()


@script()
def path_with_a_typo(job: WrongJob) -> None:
    """It writes a Delta table beside the guarded one."""
    with job.guard() as sw:
        job.append(f"{sw.table}_")
        sw.success()


@script()
def another_scheme(job: WrongJob) -> None:
    """It writes the guarded table by s3://, and guards it by s3a://."""
    with job.guard() as sw:
        job.append(sw.table.replace("s3a://", "s3://"))
        sw.success()


@script()
def guarded_by_another_scheme(job: WrongJob) -> None:
    """It guards the table by s3://, and writes it by s3a://."""
    with job.guard(job.table.replace("s3a://", "s3://")) as sw:
        job.append(job.table)
        sw.success()


@script(formats=ICEBERG, short=("iceberg",))
def plain_name(job: WrongJob) -> None:
    """It writes the table by its own name instead of the block's."""
    with job.guard() as sw:
        job.append(job.table)
        sw.success()


@script(formats=ICEBERG)
def plain_name_then_an_error(job: WrongJob) -> None:
    """It writes the table by its own name, and then fails."""
    with job.guard() as sw:
        job.append(job.table)
        if job.attempt == 1:
            raise ValueError("a check that came too late")
        sw.success()


@script(formats=ICEBERG)
def plain_name_as_table(job: WrongJob) -> None:
    """It writes the table by its own name and saveAsTable."""
    with job.guard() as sw:
        job.frame().write.format("iceberg").mode("append").saveAsTable(job.table)
        sw.success()


@script(formats=ICEBERG, parts=((*BASE, *BATCH[3:]),))
def plain_name_beside_the_blocks(job: WrongJob) -> None:
    """It writes half by the block's name, and half by the table's own."""
    with job.guard() as sw:
        job.append(sw.table, range(10, 13))
        job.append(job.table, range(13, 17))
        sw.success()


@script(formats=BOTH)
def rows_that_stay_in_python(job: WrongJob) -> None:
    """It hands the rows to a function of its own, and no statement writes the table."""
    with job.guard() as sw:
        job.frame().foreachPartition(lambda rows: [*rows].clear())
        sw.success()


@script(formats=BOTH)
def view_instead_of_a_write(job: WrongJob) -> None:
    """It creates a view of the rows instead of writing them."""
    with job.guard() as sw:
        job.frame().createOrReplaceTempView("orders_clean")
        job.spark.sql("CACHE TABLE orders_clean")
        sw.success()


@script(succeeds=(1, 2))
def name_of_the_same_place(job: WrongJob) -> None:
    """It writes by a name whose location is the guarded table: unusual, and right."""
    job.spark.sql(f"CREATE TABLE orders USING delta LOCATION '{job.table}'")
    with job.guard() as sw:
        job.frame().write.insertInto("orders")
        sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def report_on_s3_beside_the_rows(job: WrongJob) -> None:
    """It writes a report in CSV beside the batch: unusual, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        job.frame().write.mode("overwrite").csv(job.other("report"))
        sw.success()


@script(before=(), succeeds=(1, 2))
def name_with_a_place_for_a_new_table(job: WrongJob) -> None:
    """It creates the guarded table by a name and a path: unusual, and right."""
    with job.guard() as sw:
        job.frame().write.format("delta").option("path", sw.table).saveAsTable("orders")
        sw.success()
