"""The doctor names each line of a Glue script that uses Glue's library, and what it says instead."""

from __future__ import annotations

from pathlib import Path

from soal.doctor.script_glue import REPLACED
from tests.unit.soal.doctor.examined import look, one

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "migrating.md"
# As Glue's console makes it.
GLUE = """
import sys
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext
from awsglue.context import GlueContext
from awsglue.job import Job

args = getResolvedOptions(sys.argv, ["JOB_NAME", "day"])
glueContext = GlueContext(SparkContext())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)
rooms = glueContext.create_dynamic_frame.from_catalog(
    database="d", table_name="t", transformation_ctx="rooms"
)
mapped = ApplyMapping.apply(frame=rooms, mappings=[("a", "string", "b", "long")], transformation_ctx="mapped")
glueContext.write_dynamic_frame_from_options(frame=mapped, connection_type="s3")
job.commit()
"""


def test_each_use_of_the_library_is_named_with_its_line(tmp_path: Path) -> None:
    """Imports, arguments, context, frames, transforms, the job's begin and end, and the bookmark, once."""
    found = look(tmp_path, GLUE)
    assert [(finding.name, finding.detail) for finding in found] == [
        ("job.py:3", "imports awsglue.transforms"),
        ("job.py:4", "imports awsglue.utils"),
        ("job.py:6", "imports awsglue.context"),
        ("job.py:7", "imports awsglue.job"),
        ("job.py:9", "uses getResolvedOptions of Glue"),
        ("job.py:10", "uses GlueContext of Glue"),
        ("job.py:12", "uses Job of Glue"),
        ("job.py:13", "calls job.init of Glue"),
        ("job.py:14", "uses create_dynamic_frame of Glue"),
        ("job.py:15", "names transformation_ctx, a job bookmark of Glue"),
        ("job.py:17", "uses ApplyMapping of Glue"),
        ("job.py:18", "uses write_dynamic_frame of Glue"),
        ("job.py:19", "calls job.commit of Glue"),
    ]
    assert all(finding.remedy for finding in found)


def test_a_script_with_a_way_without_the_library_has_only_its_import_named(tmp_path: Path) -> None:
    """It tests for the library, and does not call it here."""
    text = "try:\n    from awsglue.context import GlueContext\nexcept ImportError:\n    GlueContext = None\n"
    assert one(tmp_path, f"{text}context = GlueContext and GlueContext(None)\n").status == "warn"


def test_the_names_are_other_things_in_other_scripts(tmp_path: Path) -> None:
    """Only a script that imports the library uses it."""
    assert one(tmp_path, "job = Job()\njob.commit()\nGlueContext = 1\n").status == "ok"


def test_the_guide_has_each_name() -> None:
    """What the doctor says in a line stands there with its context."""
    section = GUIDE.read_text(encoding="utf-8").partition("## From AWS Glue\n")[2].partition("\n## ")[0]
    assert [name for name in REPLACED if name not in section] == []
