"""Compact the small files of a Delta or Iceberg table, and expire old snapshots of an Iceberg table.

It makes no rows, so it needs no guard, and it may be repeated. If a writer commits first, it gives way: it reads the
table anew, three times, and then ends with exit code 75, so that a schedule's next event tries again. A writer that
changes rows (MERGE, UPDATE, DELETE) while this job commits has to be retried itself: give both a turn at one lock.

{"entryPoint": "s3://BUCKET/jobs/maintain.py", "name": "maintain",
 "entryPointArguments": ["--table", "s3a://BUCKET/accommodations", "--keep-days", "7"]}
"""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

TRIES = 3
TRY_AGAIN = 75
CONFLICTS = (
    "io.delta.exceptions.Concurrent",
    "org.apache.spark.sql.delta.Concurrent",
    "org.apache.iceberg.exceptions.CommitFailedException",
)
REPLACED = "org.apache.iceberg.exceptions.ValidationException"
"""Iceberg's error if a writer has replaced a file of the compaction; it has many other meanings elsewhere."""
CAUSES_MAX = 20

parser = argparse.ArgumentParser()
parser.add_argument("--table", required=True, help="s3a:// path of a Delta table, or catalog.namespace.table")
parser.add_argument("--keep-days", type=int, default=7, help="expire an Iceberg table's snapshots that are older")
parser.add_argument("--files-min", type=int, default=5, help="compact an Iceberg partition with at least so many files")
args = parser.parse_args()

spark = SparkSession.builder.appName("maintain").getOrCreate()


def classes(error: Exception) -> list[str]:
    """Return the names of the Java classes of an error and its causes: its text holds names of paths, too."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names: list[str] = []
    while java is not None and len(names) < CAUSES_MAX:
        names.append(java.getClass().getName())
        java = java.getCause()
    return names


def yielding(act: Callable[[], object], *more: str) -> None:
    """Do it again if a writer has committed first; `more` are further classes of such an error."""
    for left in reversed(range(TRIES)):
        try:
            act()
        except Exception as error:
            if not any(name.startswith((*CONFLICTS, *more)) for name in classes(error)):
                raise
            print(f"a writer has committed first; {left} more tries: {error}")
        else:
            return
    sys.exit(TRY_AGAIN)


if "://" in args.table:
    # The path is quoted: an argument in a statement must be a name and nothing more.
    table = "delta.`" + args.table.replace("`", "``") + "`"

    def compact() -> None:
        """Compact by Delta's own command."""
        ((_, metrics),) = spark.sql(f"OPTIMIZE {table}").collect()
        print(f"{args.table}: {metrics['numFilesRemoved']} files became {metrics['numFilesAdded']}")

    yielding(compact)
else:
    # A procedure takes no parameters, so the name is a literal: nothing in it ends the quotes.
    catalog, name = args.table.split(".", 1)
    procedures = "`" + catalog.replace("`", "``") + "`.system"
    named = "table => '" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def rewrite() -> None:
        """Compact by Iceberg's own procedure."""
        options = f"options => map('min-input-files', '{args.files_min}')"
        (done,) = spark.sql(f"CALL {procedures}.rewrite_data_files({named}, {options})").collect()
        print(f"{args.table}: {done['rewritten_data_files_count']} files became {done['added_data_files_count']}")

    def expire() -> None:
        """Expire the snapshots that nobody may still read."""
        before = (datetime.now(UTC) - timedelta(days=args.keep_days)).strftime("%Y-%m-%d %H:%M:%SZ")
        older = f"older_than => TIMESTAMP '{before}', retain_last => 10"
        (done,) = spark.sql(f"CALL {procedures}.expire_snapshots({named}, {older})").collect()
        print(f"{args.table}: {done['deleted_data_files_count']} data files of expired snapshots are gone")

    yielding(rewrite, REPLACED)
    yielding(expire)
