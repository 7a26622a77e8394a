"""The doctor finds in a script the data formats that the image or its variants lack, such as Avro."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.soal.doctor.examined import look, one

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "line",
    [
        "frame.write.format('avro').save('s3a://lake/a')",
        "spark.read.format('AVRO').load(p)",
        "spark.read.format(source='Avro').load(p)",
        "spark.read.load(p, format='avro')",
        "spark.read.option('a', 'b').load(p, 'avro')",
        "frame.write.save(p, format='avro')",
        "frame.write.mode('append').save(p, 'AVRO', 'append')",
        "frame.write.saveAsTable('t', format='avro')",
        "frame.writeTo('t').using('avro').create()",
        "spark.readStream.load(p, format='avro')",
        "frame.writeStream.option('path', p).start(p, 'avro')",
        "spark.catalog.createTable('t', p, source='avro')",
        "r = spark.read; r.format('avro').load(p)",
        "r = spark.read.option('a', 'b'); s = r.schema(t); s.load(p, format='avro')",
        "r: DataFrameReader = reader(); r.format('avro')",
        "self.reader = spark.read; self.reader.format('avro')",
        "if (w := frame.write): w.format('avro')",
        "def write(w: 'DataFrameWriter'): w.format('avro').save(p)",
        "spark.sql('CREATE TABLE t (a INT) USING avro')",
        "spark.sql(f'create or replace temporary view {name} using AVRO options (path {p})')",
        "sql = 'CREATE TABLE ' + name + ' USING `avro`'",
        "spark.sql(\"INSERT OVERWRITE DIRECTORY 's3a://lake/a' USING avro SELECT 1\")",
        "spark.sql('SELECT * FROM avro.`s3a://lake/a`')",
        "spark.sql(f'SELECT * FROM AVRO.`{path}`')",
    ],
)
def test_avro_is_found(tmp_path: Path, line: str) -> None:
    """Avro is found in every form in which PySpark and SQL name a format, in upper and lower case."""
    variant, failed, *_ = look(tmp_path, line)
    assert (failed.status, failed.name, failed.detail) == ("fail", "job.py:1", "uses the format avro")
    assert variant.detail == "it needs the image's variant full"
    assert not any("avro" in found.detail for found in look(tmp_path, line, "full"))


def test_a_format_is_told_once_for_a_line(tmp_path: Path) -> None:
    """A format is reported once per line."""
    found = look(tmp_path, "spark.read.format('avro').load(p, format='AVRO')")
    assert [finding.name for finding in found] == ["job.py", "job.py:1"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("spark.sql('CREATE TABLE t USING hudi')", "hudi"),
        ("frame.write.save(p, format='Hudi')", "hudi"),
        ("frame.writeStream.start(format='kafka')", "kafka"),
    ],
)
def test_formats_of_no_variant_are_found_as_well(tmp_path: Path, line: str, name: str) -> None:
    """A format that no variant has is found; the doctor suggests no variant."""
    found = look(tmp_path, line)
    assert f"uses the format {name}" in {finding.detail.partition(",")[0] for finding in found}
    assert not any("variant" in finding.detail for finding in found)


@pytest.mark.parametrize(
    "line",
    [
        "'s3a://{}/'.format('avro')",
        "template.format('avro')",
        "open(p).read().format('avro')",
        "json.load(file, 'avro')",
        "image.save(p, format='avro')",
        "rows = spark.read.text(p).count(); rows.format('avro')",
        "spark.read.format(name).load(p)",
        "spark.sql('CREATE TABLE lake.db.t USING delta')",
        "spark.sql('SELECT * FROM a JOIN b USING (avro)')",
        "print('reads tables using avro')",
        "spark.sql('SELECT * FROM x_avro.`t`')",
    ],
)
def test_texts_and_other_methods_of_these_names_are_left_alone(tmp_path: Path, line: str) -> None:
    """Only Spark's readers and writers take a format, and only some statements do."""
    assert one(tmp_path, line).status == "ok"
