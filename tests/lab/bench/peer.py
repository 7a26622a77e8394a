"""A function that starts Spark as aws-samples/spark-on-aws-lambda does, for comparison.

Their function (sparkLambdaHandler.py and the spark-class beside it): boto3 fetches the script to a fixed path, each
entry of the event becomes a variable, and `spark-submit` runs it with one gigabyte of heap, whatever the function has,
on unmodified PySpark and its jars. Here `spark-submit` is the stock one (Java 17 needs what theirs leaves out), and the
script takes arguments, not the event, so that both functions run the same kind of script.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import boto3

__all__ = ["SETTINGS", "lambda_handler"]

SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
}
"""The minimal settings for Spark to write Delta to S3 on this machine."""


def lambda_handler(event: dict[str, str], _context: Any) -> dict[str, str]:
    """Run the script of `SCRIPT_BUCKET` and `SPARK_SCRIPT` with the event as its options; raises if it fails.

    `SPARK_HOME` is Spark's folder, `CLASS_PATH` holds the jars of Delta and S3A.
    """
    script = Path(os.environ["TMPDIR"], "spark_script.py")
    bucket = boto3.resource("s3").Bucket(os.environ["SCRIPT_BUCKET"])
    bucket.download_file(os.environ["SPARK_SCRIPT"], str(script))
    os.environ.update(event)
    confs = {**SETTINGS, "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL_S3"]}
    command = [
        f"{os.environ['SPARK_HOME']}/bin/spark-submit",
        *("--driver-memory", "1g"),
        *("--driver-class-path", os.environ["CLASS_PATH"]),
        *(part for key, value in confs.items() for part in ("--conf", f"{key}={value}")),
        str(script),
        *(part for name, value in event.items() for part in (f"--{name}", value)),
    ]
    subprocess.run(command, check=True, cwd=os.environ["TMPDIR"])
    return {"statusCode": "200"}
