"""Jobs in the shapes that people publish, one after another in one sandbox: the right rows, or the next step."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.faults.function_case import CATALOG, SCRIPTS, served
from tests.integration.handler import shape_scripts as scripts
from tests.integration.handler.refused_shapes import REFUSED
from tests.support.iceberg_writer import open_catalog
from tests.support.lake import LAKE, Lake
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.outcome.result import Result
    from tests.faults.function_case import Function

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow]

AS_ANOTHER = ("createIfNotExists and MERGE in one block", "saveAsTable of an Iceberg table")
"""Their answers are those of the shapes before them, and each failed job costs a JVM: they run in the matrix."""


@dataclass
class Sandbox:
    """The function. A job that succeeds leaves its JVM to the next one."""

    function: Function
    is_warm: bool = False

    def __call__(self, script: str, *arguments: str) -> Result:
        self.function.s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=script.encode())
        event = {"entryPoint": f"s3://{SCRIPTS}/job.py", "entryPointArguments": arguments}
        result = self.function.result(self.function.emulator.invoke(event))
        assert result.warm_start or not self.is_warm
        self.is_warm = result.state == "SUCCESS"
        return result


@dataclass(frozen=True)
class Place:
    """The folder of one test's data, and its jobs."""

    sandbox: Sandbox
    name: str

    @property
    def uri(self) -> str:
        return f"s3a://{LAKE}/{self.name}"

    def put(self, key: str, *lines: str) -> None:
        body = "".join(f"{line}\n" for line in lines).encode()
        self.sandbox.function.s3.observer().put_object(Bucket=LAKE, Key=f"{self.name}/{key}", Body=body)

    def run(self, script: str, *arguments: str) -> Result:
        """Run a job that succeeds, and of whose settings none is ignored."""
        result = self.sandbox(script, *(arguments or (self.uri,)))
        assert (result.state, result.exit_code) == ("SUCCESS", 0), result.state_details
        assert not any(warning.startswith("the script sets ") for warning in result.warnings)
        return result

    def keys(self, folder: str) -> list[str]:
        """The keys of data below a folder, without those that begin with an underscore."""
        found = self.sandbox.function.s3.keys(LAKE, f"{self.name}/{folder}/")
        return [key for key in found if not key.rpartition("/")[2].startswith("_") and not key.endswith("/")]

    def read(self, key: str) -> bytes:
        return self.sandbox.function.s3.observer().get_object(Bucket=LAKE, Key=key)["Body"].read()

    def parquet(self, folder: str) -> list[dict[str, Any]]:
        return [row for key in self.keys(folder) for row in pq.read_table(io.BytesIO(self.read(key))).to_pylist()]

    def delta(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a Delta table, sorted."""
        s3 = self.sandbox.function.s3
        lake = Lake(s3.observer(), s3.endpoint, f"{self.name}/{table}")
        lake.check()
        found = lake.delta()
        assert found is not None
        return sorted((tuple(row.values()) for row in found.to_pyarrow_table().to_pylist()), key=str)

    def iceberg(self, table: str) -> list[tuple[Any, ...]]:
        found = open_catalog(CATALOG, self.sandbox.function.catalog).load_table(f"db.{table}").scan().to_arrow()
        return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with served(tmp_path_factory.mktemp("catalog"), BUSY_S) as function:
        yield Sandbox(function)


@pytest.fixture
def place(sandbox: Sandbox, request: pytest.FixtureRequest) -> Place:
    return Place(sandbox, str(request.node.originalname))


def writes(result: Result) -> list[tuple[str, str | None, str, int | None]]:
    return [(one.table.rpartition("/")[2], one.step, one.status, one.rows) for one in result.writes]


def test_a_main_function_with_arguments_and_a_log_of_its_own(place: Place) -> None:
    """It takes dates by argparse, logs by basicConfig, overwrites Parquet, and ends itself by exit code 0."""
    place.put("in.csv", "id,day,price", "1,2026-11-20,9.5", "2,2026-11-21,7.0", "3,2026-11-20,3.25")
    result = place.run(
        scripts.TEMPLATE, "--source", f"{place.uri}/in.csv", "--target", f"{place.uri}/out", "--day", "2026-11-20"
    )
    assert "INFO daily: 2 rows of 2026-11-20" in result.log_tail
    assert sorted((row["id"], row["price"]) for row in place.parquet("out")) == [(1, 9.5), (3, 3.25)]


def test_the_word_count_of_every_tutorial(place: Place) -> None:
    """On RDDs, with a context of its own."""
    place.put("in/a.txt", "to be or not", "to be")
    assert "|  be|    2|" in place.run(scripts.WORDS).log_tail
    (key,) = place.keys("counts")
    assert place.read(key) == b"be: 2\nto: 2\nnot: 1\nor: 1\n"


def test_a_report_in_one_file_of_csv_that_boto3_puts_where_it_belongs(place: Place) -> None:
    """A window keeps each order's last state, a small frame is broadcast, and the builder's settings are SQL's own."""
    place.put("orders.csv", "id,customer,amount,changed", "1,7,10.0,1", "1,7,12.5,2", "2,8,1.0,1", "3,9,4.0,1")
    place.put("customers.json", *(json.dumps({"customer": 7 + n, "country": c}) for n, c in enumerate(("AT", "CH"))))
    place.run(scripts.REPORT)
    rows = list(csv.reader(io.StringIO(place.read(f"{place.name}/report.csv").decode())))
    assert rows == [["country", "sum"], ["", "4.0"], ["AT", "12.5"], ["CH", "1.0"]]


def test_nested_json_of_many_lines_becomes_rows(place: Place) -> None:
    """Its schema is inferred; an order without lines has no row, a line without tags one."""
    lines = [{"sku": "a", "tags": ["new", "red"]}, {"sku": "b", "tags": []}]
    orders = [
        {"id": 1, "customer": {"city": "Rome"}, "lines": lines},
        {"id": 2, "customer": {"city": "Bern"}, "lines": []},
    ]
    place.put("orders.json", json.dumps(orders, indent=2))
    place.run(scripts.NESTED)
    rows = [json.loads(line) for key in place.keys("flat") for line in place.read(key).splitlines()]
    assert rows == [
        {"id": 1, "city": "Rome", "sku": "a", "tag": "new"},
        {"id": 1, "city": "Rome", "sku": "a", "tag": "red"},
        {"id": 1, "city": "Rome", "sku": "b"},
    ]


def test_an_overwrite_of_partitions_leaves_the_other_days(place: Place) -> None:
    """Spark's dynamic mode, on Parquet."""
    place.put("new.csv", "id,day", "1,2026-11-20", "2,2026-11-21")
    place.run(scripts.PARTITIONS)
    place.put("new.csv", "id,day", "3,2026-11-21", "4,2026-11-22")
    place.run(scripts.PARTITIONS)
    days = {day: [row["id"] for row in place.parquet(f"days/day=2026-11-{day}")] for day in (20, 21, 22)}
    assert days == {20: ["1"], 21: ["3"], 22: ["4"]}


def test_paths_of_both_schemes_with_globs_and_in_lists(place: Place) -> None:
    """Each row knows its file."""
    for month, name in ((11, "a"), (11, "c"), (12, "b")):
        place.put(f"2026-{month}/{name}.csv", "id", f"{month}{name}")
    place.put("2027-01/a.csv", "id", "none")
    told = [line for line in place.run(scripts.PATHS).log_tail if line.startswith("READ")]
    a, b, c = "11a=2026-11/a.csv", "12b=2026-12/b.csv", "11c=2026-11/c.csv"
    assert told == [f"READ {a} {c} {b}", f"READ {a} {b}", f"READ {a} {b}"]


def test_a_script_that_stops_its_spark_leaves_the_jvm_to_the_next(place: Place) -> None:
    """As most published scripts end."""
    assert place.run(scripts.STOPS).log_tail[-1] == "stopped"
    assert place.run(scripts.STOPS).warm_start
    assert sorted(row["id"] for row in place.parquet("out")) == [0, 1, 2]


def test_a_dimension_keeps_its_history(place: Place) -> None:
    """A MERGE closes a changed row and adds its successor; an unchanged row stays."""
    place.put("new.csv", "id,city,day", "1,Rome,2026-11-20", "2,Bern,2026-11-20")
    place.run(scripts.HISTORY)
    place.put("new.csv", "id,city,day", "1,Oslo,2026-11-21", "2,Bern,2026-11-21", "3,Graz,2026-11-21")
    place.run(scripts.HISTORY)
    first, second = date(2026, 11, 20), date(2026, 11, 21)
    assert place.delta("rooms") == [
        (1, "Oslo", second, None, True),
        (1, "Rome", first, second, False),
        (2, "Bern", first, None, True),
        (3, "Graz", second, None, True),
    ]


def test_a_stream_that_upserts_what_is_new_and_ends(place: Place) -> None:
    """By DeltaTable in foreachBatch; the second run goes on behind the first, in one guarded write."""
    place.put("in/1.csv", "id,city", "1,Rome", "2,Bern")
    place.run(scripts.STREAM)
    place.put("in/2.csv", "id,city", "2,Graz", "3,Oslo")
    assert [one.status for one in place.run(scripts.STREAM).writes] == ["committed"]
    assert place.delta("rooms") == [(1, "Rome"), (2, "Graz"), (3, "Oslo")]


def test_tables_that_are_created_from_a_query(place: Place) -> None:
    """In Delta guarded, by a place on S3, and in an Iceberg catalog."""
    place.put("new.csv", "id,city", "1,Rome", "2,Bern", "3,Rome")
    result = place.run(scripts.CREATES, place.uri, "lake.db.cities")
    assert writes(result) == [("cities", None, "committed", 2)]
    assert place.delta("cities") == place.iceberg("cities") == [("Bern", 1), ("Rome", 2)]


def test_threads_with_a_session_and_a_table_each(place: Place) -> None:
    """As scripts load many small tables at once."""
    names = ["a", "b", "c"]
    for number, name in enumerate(names):
        place.put(f"{name}.csv", "id", str(number))
    result = place.run(scripts.THREADS, place.uri, *names)
    assert sorted(writes(result)) == [(name, None, "committed", 1) for name in names]
    assert [place.delta(name) for name in names] == [[(0,)], [(1,)], [(2,)]]


def test_two_tables_in_one_job_also_without_rows(place: Place) -> None:
    """What is cached is counted and written; a file that has only a header is a write of no rows."""
    for rows in (["1,Rome", "2,Bern"], []):
        place.put("new.csv", "id,city", *rows)
        assert writes(place.run(scripts.STEPS)) == [
            ("rooms", None, "committed", len(rows)),
            ("audit", "loaded", "committed", 1),
            ("audit", "checked", "committed", 1),
        ]
    assert place.delta("rooms") == [(1, "Rome"), (2, "Bern")]
    assert place.delta("audit") == [("checked", 0), ("checked", 2), ("loaded", 0), ("loaded", 2)]


def test_a_column_that_comes_late(place: Place) -> None:
    """With mergeSchema the table has it, and old rows are without a value."""
    place.put("new.csv", "id,city", "1,Rome")
    place.run(scripts.LATE_COLUMN)
    place.put("new.csv", "id,city,stars", "2,Bern,4")
    place.run(scripts.LATE_COLUMN)
    assert place.delta("rooms") == [(1, "Rome", None), (2, "Bern", 4)]


def test_an_iceberg_table_is_changed_by_two_statements_and_by_a_frame_s_merge(place: Place) -> None:
    """DELETE and append are one write there; each block has its step."""
    place.put("new.csv", "id,city", "1,Rome", "2,Bern")
    for _ in range(2):
        place.run(scripts.ICEBERG, place.uri, "lake.db.rooms")
    assert place.iceberg("rooms") == [(1, "Rome"), (2, "Rome"), (3, "Oslo")]


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=pytest.mark.matrix) if one in AS_ANOTHER else one for one in REFUSED]
)
def test_a_shape_that_cannot_work_is_answered_with_what_to_do(place: Place, shape: str) -> None:
    """In one line that also names the script's."""
    script, sentence = REFUSED[shape]
    result = place.sandbox(script, f"{place.uri}/{list(REFUSED).index(shape)}")
    assert result.state == "FAILED"
    assert sentence in result.state_details
    assert len(result.state_details.splitlines()) == 1
    assert "(job.py, line " in result.state_details
