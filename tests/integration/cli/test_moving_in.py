"""An unchanged script as written for aws-samples/spark-on-aws-lambda."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from scripts.tables.delta import view
from soal.target import local_target

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Soal

pytestmark = [pytest.mark.matrix, pytest.mark.spark, pytest.mark.emulator]

SCRIPT = """
import argparse, json, os
from pyspark.sql import SparkSession
from pyspark.sql.functions import current_timestamp

def main(event):
    spark = SparkSession.builder.appName("Spark-on-AWS-Lambda") \\
        .master("local[*]") \\
        .config("spark.driver.bindAddress", "127.0.0.1") \\
        .config("spark.driver.memory", "5g") \\
        .config("spark.executor.memory", "5g") \\
        .config("spark.jars.packages", "io.delta:delta-core_2.12:2.2.0") \\
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension") \\
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog") \\
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer") \\
        .config("spark.hadoop.hive.metastore.client.factory.class", "com.amazonaws.glue.AWSGlueClientFactory") \\
        .config("spark.hadoop.fs.s3a.access.key", os.environ["AWS_ACCESS_KEY_ID"]) \\
        .config("spark.hadoop.fs.s3a.secret.key", os.environ["AWS_SECRET_ACCESS_KEY"]) \\
        .config("spark.hadoop.fs.s3a.session.token", os.environ["AWS_SESSION_TOKEN"]) \\
        .config("spark.hadoop.fs.s3a.aws.credentials.provider",
                "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider") \\
        .enableHiveSupport().getOrCreate()
    frame = spark.read.option("header", "true").option("delimiter", ";").csv(os.environ["input_path"])
    frame.withColumn("day", current_timestamp()).write.format("delta").mode("append").save(os.environ["output_path"])
    print("rows", spark.read.format("delta").load(os.environ["output_path"]).count(), "day", event["day"])

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--event")
    main(json.loads(parser.parse_args().event))
"""


def test_a_script_from_aws_samples_runs_as_it_is(soal: Soal, tmp_path: Path) -> None:
    """The result names the settings that it ignored, the same as doctor before."""
    endpoint = str(soal("local", "up", "--json").json["endpoint"])
    client = local_target(endpoint).client()
    client.put_object(Bucket="soal-scripts", Key="moved/delta.py", Body=SCRIPT.encode())
    path = tmp_path / "delta.py"
    path.write_text(SCRIPT, encoding="utf-8")
    variables = {
        "SCRIPT_BUCKET": "soal-scripts/moved",
        "SPARK_SCRIPT": "delta.py",
        "input_path": "s3a://soal-data/accommodations.csv",
        "output_path": "s3a://soal-lake/moved",
    }
    given = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    answer = soal("local", "invoke", json.dumps({"day": 20}), "--json", *given)
    assert answer.code == 0, answer
    rows = view(client, "soal-lake", "moved", local_target(endpoint).aws).rows
    assert rows > 0
    assert answer.json["logTail"][-1] == f"rows {rows} day 20"
    told = [
        key.strip()
        for warning in answer.json["warnings"]
        if warning.startswith("the script sets ")
        for key in warning.removeprefix("the script sets ").split(", which was ignored")[0].split(",")
    ]
    foretold = [
        finding["detail"].split()[1].rstrip(",")
        for finding in soal("doctor", str(path), "--json").json
        if finding["detail"].startswith("sets ")
    ]
    assert sorted(told) == sorted(foretold)
    assert len(told) == 9
