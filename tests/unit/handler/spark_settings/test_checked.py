"""The handler checks an event's Spark settings against the allow-list, their forms, and the owner's permits."""

from __future__ import annotations

import pytest

from handler.input_errors import InputError
from handler.spark_settings.allowed import ALLOWED, form_of
from handler.spark_settings.checked import Permit, check_conf, check_own_conf
from handler.spark_settings.tuning import TUNING


def check(
    key: str,
    value: str = "x",
    permits: tuple[str, ...] = (),
    owned: dict[str, str] | None = None,
    region: str | None = "eu-central-1",
) -> None:
    check_conf({key: value}, "conf", permits=tuple(map(Permit.parse, permits)), owned=owned or {}, region=region)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.shuffle.partitions", "8"),
        ("spark.driver.memory", "1500m"),
        ("spark.driver.cores", "2"),
        ("spark.executor.memory", "4g"),
        ("spark.dynamicAllocation.enabled", "true"),
        ("spark.sql.session.timeZone", "America/Argentina/Buenos_Aires"),
        ("spark.sql.sources.partitionOverwriteMode", "DYNAMIC"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.sql.catalog.ice.type", "glue"),
        ("spark.sql.catalog.ice.warehouse", "s3://lake/warehouse"),
        ("spark.sql.catalog.ice.io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"),
        ("spark.databricks.delta.optimizeWrite.enabled", "true"),
        ("spark.databricks.delta.commitInfo.userMetadata", "a note: $5"),
        (
            "spark.hadoop.fs.s3a.bucket.open-data.aws.credentials.provider",
            "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        ),
        ("spark.hadoop.fs.s3a.endpoint.region", "eu-west-1"),
        ("spark.hadoop.fs.s3a.bucket.my.bucket.endpoint.region", "us-east-1"),
        ("spark.sql.catalogImplementation", "in-memory"),
    ],
)
def test_what_an_event_may_bring(key: str, value: str) -> None:
    """The list permits ordinary tuning, catalogs in Glue, and public data."""
    check(key, value)


@pytest.mark.parametrize(
    "key",
    [
        "spark.master",
        "SPARK.MASTER",
        "spark.submit.deployMode",
        "spark.jars",
        "spark.jars.repositories",
        "spark.remote",
        "spark.driver.extraLibraryPath",
        "spark.plugins",
        "spark.hadoop.fs.s3a.impl",
        "spark.hadoop.fs.file.impl",
        "spark.hadoop.fs.AbstractFileSystem.file.impl",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key",
        "spark.hadoop.fs.s3a.bucket.lake.endpoint",
        "spark.hadoop.fs.s3a.create.conditional.enabled",
        "spark.databricks.delta.testOnly.dataFileNamePrefix",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.catalog.safewriter",
        "spark.sql.catalog.safewriter.type",
        "spark.delta.logStore.gs.impl",
        "spark.wap.id",
        "spark.yarn.appMasterEnv.PATH",
        "spark.kubernetes.driverEnv.PATH",
        "spark.pyspark.python",
        "spark.driver.bindAddress",
    ],
)
def test_what_would_leave_the_sandbox_or_switch_off_the_guard(key: str) -> None:
    """It is refused in any case of letters, even with the owner's permit."""
    with pytest.raises(InputError, match=r"may not be set by a job: .+"):
        check(key, permits=("spark.*",))
    with pytest.raises(InputError, match=r"may not be set by a job: .+"):
        check_own_conf({key: "x"}, "SOAL_CONF")


@pytest.mark.parametrize(
    "key",
    [
        "spark.no.such.setting",
        "spark.sql.catalog.ice.uri",
        "spark.sql.catalog.ice.hadoop.fs.s3a.endpoint",
        "spark.sql.catalog.ice.s3.endpoint",
        "spark.sql.shuffle.partitions.more",
        "spark.eventLog.dir",
        "spark.redaction.regex",
        "spark.metrics.namespace",
        "spark.hadoop.fs.s3a.proxy.host",
        "spark.hadoop.fs.s3a.bucket.lake.accesspoint.arn",
    ],
)
def test_what_is_not_on_the_list(key: str) -> None:
    """An unlisted setting is refused, and the message says where it can be set instead."""
    with pytest.raises(InputError, match=r"not a setting that an event may bring; .+SOAL_CONF_ALLOW"):
        check(key)


@pytest.mark.parametrize(
    ("key", "value", "form"),
    [
        ("spark.sql.shuffle.partitions", "two", "a whole number from 1 to 2147483647"),
        ("spark.sql.shuffle.partitions", "0", "a whole number"),
        ("spark.sql.shuffle.partitions", "٣", "a whole number"),
        ("spark.sql.shuffle.partitions", "2147483648", "a whole number"),
        ("spark.driver.memory", "lots", "a size such as 1500m or 2g"),
        ("spark.driver.cores", "100", "a whole number from 1 to 99"),
        ("spark.sql.adaptive.enabled", "yes", "true or false"),
        ("spark.sql.session.timeZone", "Nowhere", "a time zone"),
        ("spark.sql.catalog.ice.warehouse", "hdfs://elsewhere:8020/w", "an s3:// or s3a:// location"),
        ("spark.sql.catalog.ice.warehouse", "https://elsewhere/w", "an s3:// or s3a:// location"),
        ("spark.sql.catalog.ice", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog", "must be org"),
        ("spark.sql.catalog.ice.io-impl", "com.example.FileIO", "must be org.apache.iceberg.hadoop.HadoopFileIO or"),
        ("spark.sql.catalog.ice.warehouse", "file:///tmp/w", "an s3:// or s3a:// location"),
        ("spark.hadoop.fs.s3a.endpoint.region", "elsewhere.example/#", "a region such as eu-west-1"),
        (
            "spark.hadoop.fs.s3a.bucket.lake.aws.credentials.provider",
            "software.amazon.awssdk.auth.credentials.ProcessCredentialsProvider",
            "AnonymousAWSCredentialsProvider",
        ),
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension,com.example.Mine", "session extension"),
    ],
)
def test_a_value_of_another_form_is_refused(key: str, value: str, form: str) -> None:
    """It is refused before the JVM starts, and the error says which form the value must have."""
    with pytest.raises(InputError, match=f"conf.{key}: must be ") as caught:
        check(key, value)
    assert form in str(caught.value)


@pytest.mark.parametrize("value", ["env:AWS_SECRET_ACCESS_KEY", "env:", "  env:NAME"])
def test_iceberg_s_references_are_refused(value: str) -> None:
    """Iceberg replaces a property with such a value by a variable of the function."""
    with pytest.raises(InputError, match="begins with env:"):
        check("spark.sql.catalog.lake.warehouse", value, permits=("spark.*",))


@pytest.mark.parametrize("value", ["${env.AWS_SECRET_ACCESS_KEY}", "a ${env:HOME}", "${spark.driver.memory}", "$${x}"])
def test_references_are_refused_in_every_value(value: str) -> None:
    """Hadoop and Spark would expand them to variables of the function, even in a setting with free text."""
    for key in ("spark.app.name", "spark.databricks.delta.commitInfo.userMetadata", "spark.owner.allows"):
        with pytest.raises(InputError, match="holds \\$\\{"):
            check(key, value, permits=("spark.*",))
    with pytest.raises(InputError, match="holds \\$\\{"):
        check_own_conf({"spark.app.name": value}, "SOAL_CONF")


def test_the_owner_allows_more() -> None:
    """A permit is a key, or a key with certain values; `*` stands for any text, and everything else stays refused."""
    permits = ("spark.sql.catalog.lake.uri=https://catalog.example.org/*", "spark.hadoop.fs.s3a.retry.*")
    check("spark.sql.catalog.lake.uri", "https://catalog.example.org/v1", permits)
    check("spark.hadoop.fs.s3a.retry.limit", "5", permits)
    for key, value in (
        ("spark.sql.catalog.lake.uri", "https://elsewhere.example/"),
        ("spark.sql.catalog.other.uri", "https://catalog.example.org/v1"),
        ("spark.hadoop.fs.s3a.proxy.host", "elsewhere"),
    ):
        with pytest.raises(InputError, match="not a setting that an event may bring"):
            check(key, value, permits)


def test_only_the_star_of_a_permit_stands_for_other_text() -> None:
    """Dots, brackets and question marks are literal."""
    for key in ("spark.owner.x", "spark.owner.a", "sparkXowner.[abc]?"):
        with pytest.raises(InputError):
            check(key, "1", ("spark.owner.[abc]?",))
    check("spark.owner.a-b", "1?[", ("spark.owner.*=1?[",))
    with pytest.raises(InputError):
        check("spark.owner.a-b", "1xy", ("spark.owner.*=1?[",))


def test_the_owner_allows_another_value_of_a_setting_on_the_list() -> None:
    """The handler must still be able to read the value."""
    check("spark.sql.catalog.lake.io-impl", "com.example.FileIO", ("spark.sql.catalog.lake.io-impl",))
    with pytest.raises(InputError, match="a size such as"):
        check("spark.driver.memory", "lots", ("spark.driver.memory",))


def test_a_permit_is_about_spark() -> None:
    """A word that is not a Spark setting is the owner's mistake."""
    with pytest.raises(ValueError, match="begins with 'spark"):
        Permit.parse("*")


def test_an_event_does_not_change_what_the_function_sets() -> None:
    """It changes neither a setting of the owner, nor any property of a catalog that the owner has defined."""
    owned = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.uri": "https://catalog.example.org",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    }
    check("spark.sql.catalog.lakeside.type", "glue", owned=owned)
    for key, value in (
        ("spark.sql.shuffle.partitions", "8"),
        ("spark.sql.catalog.lake.type", "glue"),
        ("spark.hadoop.fs.s3a.bucket.lake.of.ours.endpoint.region", "us-east-1"),
    ):
        with pytest.raises(InputError, match="the function's own setting"):
            check(key, value, owned=owned)


@pytest.mark.parametrize(
    "value", ["/", "/etc", "file:/etc", "FILE:///etc", "/tmp/../etc", "/tmp", "//tmp/../../x", "/tmpx"]
)
def test_local_paths_outside_tmp(value: str) -> None:
    """Other places are not writable."""
    with pytest.raises(InputError, match="outside /tmp"):
        check("spark.sql.warehouse.dir", value)


def test_too_many_settings() -> None:
    """Their number is limited."""
    with pytest.raises(InputError, match="201 settings"):
        check_own_conf({f"spark.a.{number}": "1" for number in range(201)}, "conf")


def test_a_key_with_a_line_end_cannot_smuggle_another_one_in() -> None:
    """It is not a valid name of a setting."""
    with pytest.raises(InputError):
        check("spark.a\nspark.master", permits=("spark.*",))


def test_the_owner_cannot_allow_cores_that_the_handler_cannot_read() -> None:
    """The handler checks the form of the settings that it reads itself, in spite of a permit."""
    with pytest.raises(InputError, match="whole number from 1 to 99"):
        check("spark.driver.cores", "all", ("spark.driver.cores",))


def test_a_value_is_bounded() -> None:
    """Free text has a limit, too."""
    with pytest.raises(InputError, match="4097 characters; 4096 are allowed"):
        check("spark.app.name", "x" * 4097)


def test_too_many_settings_of_an_event() -> None:
    """The limit on their number applies to events as to owners."""
    with pytest.raises(InputError, match="201 settings"):
        check_conf({f"spark.a.{n}": "1" for n in range(201)}, "conf", permits=(Permit("spark.*"),), owned={}, region="")


@pytest.mark.parametrize(("key", "value"), [("spark.driver.memory", "1\u212a"), ("spark.locality.wait", "5\u017f")])
def test_letters_that_only_look_like_units_are_none(key: str, value: str) -> None:
    """The Kelvin sign and the long s equal k and s when case is ignored, but not in Spark."""
    with pytest.raises(InputError, match="must be"):
        check(key, value)


def test_what_a_retry_may_change_is_what_an_event_may_bring() -> None:
    """A name on no list would be an unreviewed setting."""
    assert all(form_of(name) is not None for name in TUNING)


def test_an_event_gives_no_table_a_property_that_refuses_an_undo() -> None:
    """A table keeps such a property for ever, and other jobs write to it. The owner may set and allow it."""
    prefix = "spark.databricks.delta.properties.defaults."
    lasting = {
        "appendOnly": "true",
        "compatibility.symlinkFormatManifest.enabled": "true",
        "universalFormat.enabledFormats": "hudi",
        "enableTypeWidening": "true",
        "checkpointInterval": "1",
        "logRetentionDuration": "interval 0 hours",
        "deletedFileRetentionDuration": "interval 0 hours",
    }
    for name, value in lasting.items():
        with pytest.raises(InputError, match="not a setting that an event may bring"):
            check(f"{prefix}{name}", value)
        check(f"{prefix}{name}", value, permits=(f"{prefix}{name}",))
        check_own_conf({f"{prefix}{name}": value}, "SOAL_CONF")
    assert {name.removeprefix(prefix) for name in ALLOWED if name.startswith(prefix)} == {
        "autoOptimize.autoCompact",
        "autoOptimize.optimizeWrite",
        "checkpointPolicy",
        "columnMapping.mode",
        "dataSkippingNumIndexedCols",
        "enableChangeDataFeed",
        "enableDeletionVectors",
        "enableInCommitTimestamps",
        "enableRowTracking",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.streaming.checkpointLocation", "s3://lake/inbox/mine"),
        ("spark.sql.warehouse.dir", "s3a://lake/inbox"),
        ("spark.sql.catalog.ice.glue.id", "666666666666"),
    ],
)
def test_an_event_names_no_place_whose_content_spark_trusts(key: str, value: str) -> None:
    """A checkpoint's offsets name classes, a warehouse is emptied, and another account's Glue names tables: only the
    owner sets or allows them.
    """
    with pytest.raises(InputError, match="not a setting that an event may bring"):
        check(key, value)
    check(key, value, permits=(f"{key}={value}",))
    check_own_conf({key: value}, "SOAL_CONF")


@pytest.mark.parametrize("key", ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"])
def test_an_event_passes_over_no_file(key: str) -> None:
    """A guarded UPDATE would drop the rows of a file that cannot be read. The owner may say so."""
    with pytest.raises(InputError, match="not a setting that an event may bring"):
        check(key, "true")
    check_own_conf({key: "true"}, "SOAL_CONF")


@pytest.mark.parametrize("key", ["endpoint.region", "bucket.lake.endpoint.region"])
def test_an_event_reads_no_bucket_of_another_partition(key: str) -> None:
    """In China, GovCloud and isolated regions anybody may have a public bucket with the name of the job's; the function
    may be there itself, or its owner allow it.
    """
    setting = f"spark.hadoop.fs.s3a.{key}"
    there = ("cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "CN-north-1")
    for own, value in (*(("eu-west-1", region) for region in there), (None, there[0]), (there[0], "us-east-1")):
        with pytest.raises(InputError, match="in another partition of AWS"):
            check(setting, value, region=own)
        check(setting, value, permits=(setting,), region=own)
    for region in there:
        check(setting, region, region=region)
