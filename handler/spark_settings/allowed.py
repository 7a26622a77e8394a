"""The Spark settings that an event may bring: an allow-list of names, each with the form of its values.

The function's callers do not own its role. A setting can send the role's credentials to another endpoint, load a class,
or write elsewhere, and each version of Spark adds settings: so an event may bring only settings that are listed here,
or that the function's owner has allowed (`SOAL_CONF_ALLOW`). None names a place or an account whose content Spark
trusts: the offsets of a stream's checkpoint name classes, `DROP DATABASE` empties a folder of the warehouse, and
another account's Glue names tables. Forms are as strict as Spark's own, so that a value that Spark would refuse is
refused before the JVM starts. A test compares both with Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.objects import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ALLOWED", "Form", "form_of"]

_INT_MAX: Final = 2**31 - 1
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,62}"
_BUCKET: Final = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a setting's values; `says` completes "must be …"."""

    says: str
    fits: Callable[[str], object]


def _matching(pattern: str, says: str) -> Form:
    return Form(says, re.compile(pattern, re.IGNORECASE | re.ASCII).fullmatch)


def _one_of(*words: str) -> Form:
    return Form(" or ".join(words), frozenset(words).__contains__)


def _one_of_words(*words: str) -> Form:
    """Return a form for words whose case Spark ignores."""
    return Form(" or ".join(words), lambda value: value.lower() in words)


def _between(least: int, most: int = _INT_MAX) -> Form:
    def fits(value: str) -> bool:
        return re.fullmatch(r"-?[0-9]{1,19}", value, re.ASCII) is not None and least <= int(value) <= most

    return Form(f"a whole number from {least} to {most}", fits)


def _is_place(value: str) -> bool:
    try:
        Location.parse(value)
    except ValueError:
        return False
    return True


_BOOLEAN: Final = _one_of_words("true", "false")
_COUNT: Final = _between(1)
_NUMBER: Final = _between(0)
_RATIO: Final = _matching(r"[0-9]{1,9}(\.[0-9]{1,9})?", "a number such as 2 or 0.5")
_SHARE: Final = _matching(r"0\.[0-9]{1,9}", "a number below 1 such as 0.6")
_SIZE: Final = _matching(r"[1-9][0-9]{0,8}(b|[kmgt]b?)?", "a size such as 64m or 1g")
_BYTES: Final = _between(1, 2**40)
_THRESHOLD: Final = _matching(r"-1|0|[1-9][0-9]{0,8}(b|[kmgt]b?)?", "a size such as 64m, or -1 for none")
_MEMORY: Final = _matching(r"[1-9][0-9]{0,6}[kmgt]b?", "a size such as 1500m or 2g")
_DURATION: Final = _matching(r"[0-9]{1,9}(ms|s|m|min|h|d)?", "a duration such as 30s or 5m")
_IDENTIFIER: Final = _matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", "a name of letters, digits, _, . and -")
_ZONE: Final = _matching(
    r"UTC|GMT|(Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)(/[a-z0-9_+-]+){1,2}"
    r"|[+-](0[0-9]|1[0-7]):[0-5][0-9]",
    "a time zone such as UTC, Europe/Vienna or +02:00",
)
_REGION: Final = _matching(r"[a-z]{2,4}(-[a-z]+){1,3}-[0-9]{1,2}", "a region such as eu-west-1")
_TEXT: Final = Form("a text", lambda _value: True)
_PLACE: Final = Form("an s3:// or s3a:// location", _is_place)
_EXTENSIONS: Final = Form(
    "Delta's or Iceberg's session extension; the image sets both",
    lambda value: (
        {word.strip() for word in value.split(",")}
        <= {
            "io.delta.sql.DeltaSparkSessionExtension",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        }
    ),
)

_DELTA: Final = "spark.databricks.delta."
_DEFAULT: Final = f"{_DELTA}properties.defaults."
_CATALOG: Final = "spark.sql.catalog.NAME"

_BY_FORM: Final[tuple[tuple[Form, str], ...]] = (
    (_TEXT, f"spark.app.name {_DELTA}commitInfo.userMetadata"),
    # The function has no executors; jobs from EMR set these, and they change nothing here.
    (_COUNT, """
        spark.executor.instances spark.executor.cores spark.cores.max spark.dynamicAllocation.maxExecutors
        spark.dynamicAllocation.initialExecutors
     """),
    (_NUMBER, "spark.dynamicAllocation.minExecutors"),
    (_MEMORY, "spark.driver.memory spark.executor.memory spark.driver.memoryOverhead spark.executor.memoryOverhead"),
    (_between(1, 99), "spark.driver.cores"),
    (_one_of("in-memory"), "spark.sql.catalogImplementation"),
    (_EXTENSIONS, "spark.sql.extensions"),
    (_ZONE, "spark.sql.session.timeZone"),
    (_IDENTIFIER, "spark.sql.defaultCatalog"),
    (_REGION, "spark.hadoop.fs.s3a.endpoint.region spark.hadoop.fs.s3a.bucket.BUCKET.endpoint.region"),
    (_one_of("org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"),
     "spark.hadoop.fs.s3a.bucket.BUCKET.aws.credentials.provider"),
    (_one_of("org.apache.spark.serializer.KryoSerializer", "org.apache.spark.serializer.JavaSerializer"),
     "spark.serializer"),
    (_one_of("1", "2"), "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"),
    (_one_of("FIFO", "FAIR"), "spark.scheduler.mode"),
    (_one_of("lz4", "lzf", "snappy", "zstd"), "spark.io.compression.codec"),
    (_one_of_words("static", "dynamic"), "spark.sql.sources.partitionOverwriteMode"),
    (_one_of_words("ansi", "legacy", "strict"), "spark.sql.storeAssignmentPolicy"),
    (_one_of_words("exception", "corrected", "legacy"), """
        spark.sql.legacy.timeParserPolicy spark.sql.parquet.datetimeRebaseModeInRead
        spark.sql.parquet.datetimeRebaseModeInWrite spark.sql.parquet.int96RebaseModeInRead
        spark.sql.parquet.int96RebaseModeInWrite
     """),
    (_one_of_words("int96", "timestamp_micros", "timestamp_millis"), "spark.sql.parquet.outputTimestampType"),
    (_one_of_words("timestamp_ltz", "timestamp_ntz"), "spark.sql.timestampType"),
    (_one_of_words("none", "uncompressed", "snappy", "gzip", "zstd", "lz4"), "spark.sql.parquet.compression.codec"),
    (_one_of_words("none", "uncompressed", "snappy", "zlib", "zstd", "lz4"), "spark.sql.orc.compression.codec"),
    (_one_of_words("exception", "last_win"), "spark.sql.mapKeyDedupPolicy"),
    (_BOOLEAN, """
        spark.dynamicAllocation.enabled spark.rdd.compress spark.shuffle.compress spark.shuffle.spill.compress
        spark.broadcast.compress spark.speculation spark.python.worker.reuse spark.python.worker.faulthandler.enabled
        spark.sql.adaptive.enabled spark.sql.adaptive.coalescePartitions.enabled
        spark.sql.adaptive.coalescePartitions.parallelismFirst spark.sql.adaptive.localShuffleReader.enabled
        spark.sql.adaptive.skewJoin.enabled spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled
        spark.sql.ansi.enabled spark.sql.ansi.doubleQuotedIdentifiers spark.sql.caseSensitive spark.sql.cbo.enabled
        spark.sql.cbo.joinReorder.enabled spark.sql.csv.filterPushdown.enabled spark.sql.json.filterPushdown.enabled
        spark.sql.datetime.java8API.enabled spark.sql.execution.arrow.pyspark.enabled
        spark.sql.execution.arrow.pyspark.fallback.enabled spark.sql.execution.arrow.pyspark.selfDestruct.enabled
        spark.sql.execution.pythonUDF.arrow.enabled spark.sql.execution.pyspark.udf.faulthandler.enabled
        spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled spark.sql.groupByAliases
        spark.sql.groupByOrdinal spark.sql.orderByOrdinal
        spark.sql.inMemoryColumnarStorage.compressed spark.sql.jsonGenerator.ignoreNullFields
        spark.sql.join.preferSortMergeJoin spark.sql.crossJoin.enabled
        spark.sql.optimizer.dynamicPartitionPruning.enabled spark.sql.optimizer.runtime.bloomFilter.enabled
        spark.sql.orc.enableVectorizedReader spark.sql.orc.filterPushdown spark.sql.orc.mergeSchema
        spark.sql.parquet.binaryAsString spark.sql.parquet.enableVectorizedReader spark.sql.parquet.filterPushdown
        spark.sql.parquet.int96AsTimestamp spark.sql.parquet.int96TimestampConversion spark.sql.parquet.mergeSchema
        spark.sql.parquet.inferTimestampNTZ.enabled spark.sql.parquet.writeLegacyFormat
        spark.sql.parquet.aggregatePushdown spark.sql.pyspark.jvmStacktrace.enabled
        spark.sql.pyspark.inferNestedDictAsStruct.enabled spark.sql.sources.bucketing.enabled
        spark.sql.sources.partitionColumnTypeInference.enabled spark.sql.statistics.fallBackToHdfs
        spark.sql.statistics.size.autoUpdate.enabled spark.sql.streaming.metricsEnabled
        spark.sql.streaming.noDataMicroBatches.enabled spark.sql.streaming.schemaInference
        spark.sql.streaming.stopActiveRunOnRestart spark.sql.readSideCharPadding
        spark.hadoop.fs.s3a.requester.pays.enabled spark.hadoop.fs.s3a.bucket.BUCKET.requester.pays.enabled
     """),
    (_BOOLEAN, " ".join(f"{_DELTA}{name}" for name in (
        "autoCompact.enabled", "optimizeWrite.enabled", "schema.autoMerge.enabled",
        "merge.optimizeInsertOnlyMerge.enabled", "merge.optimizeMatchedOnlyMerge.enabled",
        "merge.repartitionBeforeWrite.enabled",
        "dynamicPartitionOverwrite.enabled", "stats.collect", "stats.skipping",
        "delete.deletionVectors.persistent", "update.deletionVectors.persistent", "merge.deletionVectors.persistent",
        "vacuum.parallelDelete.enabled", "vacuum.logging.enabled",
     ))),
    # A table keeps the properties with which it was created. So list only those that let SafeWriter undo a commit and
    # do not shorten the life of the table's log and files. Not: appendOnly, enableTypeWidening, checkpointInterval,
    # compatibility.symlinkFormatManifest.enabled, universalFormat.enabledFormats, and names that end in
    # RetentionDuration.
    (_BOOLEAN, " ".join(f"{_DEFAULT}{name}" for name in (
        "autoOptimize.autoCompact", "autoOptimize.optimizeWrite", "enableChangeDataFeed", "enableDeletionVectors",
        "enableInCommitTimestamps", "enableRowTracking",
     ))),
    (_COUNT, f"""
        spark.default.parallelism spark.task.maxFailures spark.sql.shuffle.partitions
        spark.sql.adaptive.coalescePartitions.initialPartitionNum spark.sql.execution.arrow.maxRecordsPerBatch
        spark.sql.execution.python.udf.maxRecordsPerBatch spark.sql.files.maxPartitionNum
        spark.sql.files.minPartitionNum spark.sql.inMemoryColumnarStorage.batchSize
        spark.sql.leafNodeDefaultParallelism spark.sql.orc.columnarReaderBatchSize
        spark.sql.parquet.columnarReaderBatchSize spark.sql.pivotMaxValues
        spark.sql.sources.parallelPartitionDiscovery.parallelism spark.sql.streaming.minBatchesToRetain
        {_DELTA}snapshotPartitions
        spark.hadoop.fs.s3a.connection.maximum spark.hadoop.fs.s3a.threads.max spark.hadoop.fs.s3a.paging.maximum
     """),
    (_NUMBER, f"""
        spark.sql.files.maxRecordsPerFile spark.sql.sources.parallelPartitionDiscovery.threshold
        spark.sql.debug.maxToStringFields
        spark.sql.streaming.numRecentProgressUpdates {_DELTA}properties.defaults.dataSkippingNumIndexedCols
     """),
    (_between(1, 22), "spark.io.compression.zstd.level"),
    (_RATIO, "spark.sql.adaptive.skewJoin.skewedPartitionFactor"),
    (_SHARE, """
        spark.memory.fraction spark.memory.storageFraction spark.speculation.quantile
        spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin
     """),
    (_SIZE, """
        spark.driver.maxResultSize spark.sql.files.openCostInBytes spark.kryoserializer.buffer
        spark.kryoserializer.buffer.max spark.shuffle.file.buffer spark.reducer.maxSizeInFlight
        spark.broadcast.blockSize spark.sql.adaptive.advisoryPartitionSizeInBytes
        spark.sql.adaptive.coalescePartitions.minPartitionSize
        spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes spark.sql.files.maxPartitionBytes
        spark.hadoop.fs.s3a.block.size spark.hadoop.fs.s3a.multipart.size spark.hadoop.fs.s3a.readahead.range
     """),
    (_BYTES, f"{_DELTA}autoCompact.maxFileSize {_DELTA}optimize.maxFileSize {_DELTA}optimize.minFileSize"),
    (_THRESHOLD, """
        spark.sql.autoBroadcastJoinThreshold spark.sql.adaptive.autoBroadcastJoinThreshold
        spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold
     """),
    (_DURATION, """
        spark.locality.wait spark.network.timeout spark.executor.heartbeatInterval
        spark.sql.broadcastTimeout spark.sql.streaming.pollingDelay
     """),
    (_one_of("none", "id", "name"), f"{_DEFAULT}columnMapping.mode"),
    (_one_of("classic", "v2"), f"{_DEFAULT}checkpointPolicy"),
    (_one_of("org.apache.iceberg.spark.SparkCatalog"), _CATALOG),
    (_one_of("glue", "rest", "jdbc"), f"{_CATALOG}.type"),
    (_one_of("org.apache.iceberg.aws.glue.GlueCatalog", "org.apache.iceberg.rest.RESTCatalog",
             "org.apache.iceberg.jdbc.JdbcCatalog"), f"{_CATALOG}.catalog-impl"),
    (_one_of("org.apache.iceberg.hadoop.HadoopFileIO", "org.apache.iceberg.aws.s3.S3FileIO"), f"{_CATALOG}.io-impl"),
    (_PLACE, f"{_CATALOG}.warehouse"),
    (_IDENTIFIER, f"{_CATALOG}.default-namespace"),
    (_BOOLEAN, f"""
        {_CATALOG}.cache-enabled {_CATALOG}.cache.case-sensitive {_CATALOG}.glue.skip-archive
        {_CATALOG}.glue.skip-name-validation
     """),
    (_NUMBER, f"{_CATALOG}.cache.expiration-interval-ms"),
)  # fmt: skip

ALLOWED: Final[Mapping[str, Form]] = {name: form for form, names in _BY_FORM for name in names.split()}
"""The forms by the setting's name, in which `NAME` stands for a catalog's name, `BUCKET` for a bucket's."""
_PATTERNS: Final = tuple(
    (re.compile(re.escape(name).replace("NAME", _NAME).replace("BUCKET", _BUCKET)), form)
    for name, form in ALLOWED.items()
    if "NAME" in name or "BUCKET" in name
)


def form_of(key: str) -> Form | None:
    """Return the form of a setting's values; None if an event may not bring it."""
    return ALLOWED.get(key) or next((form for pattern, form in _PATTERNS if pattern.fullmatch(key)), None)
