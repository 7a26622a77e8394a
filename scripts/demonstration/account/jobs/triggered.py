"""A job that an event starts: a new object's rows go to the table `landed`, the event of a schedule to `ticks`."""

import json
import os
from pathlib import Path

from pyspark.sql import SparkSession

from safewriter import SafeWriter, object_path

event = json.loads(Path(os.environ["SOAL_EVENT_FILE"]).read_text(encoding="utf-8"))
spark = SparkSession.builder.appName("triggered").getOrCreate()
if event["source"] == "aws.s3":
    detail = event["detail"]
    name, source = "landed", object_path(detail["bucket"]["name"], detail["object"]["key"])
    frame = spark.read.csv(source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)
else:
    name, frame = "ticks", spark.createDataFrame([(event["id"], event["time"])], "id string, time string")

with SafeWriter(spark, f"{os.environ['TABLES']}/{name}", format="delta") as sw:
    if not sw.already_committed:
        frame.write.format("delta").mode("append").save(sw.table)
    sw.success()
