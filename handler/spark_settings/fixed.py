"""The fixed Spark settings, each with advice: other values would leave the sandbox or switch off the guard.

An event that brings one is refused (`checked`); a script that sets one runs without it (`script_settings`). The job's
process imports this module, too, so it imports nothing slow.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Rule", "is_outside_tmp", "rule", "why_fixed", "why_not_secret", "why_replaced"]

_KEYS_OF_A_BUCKET: Final = re.compile(r"spark\.hadoop\.fs\.s3a\.bucket\..+\.(?:access\.key|secret\.key|session\.token)")
_LOCAL: Final = re.compile(r"(?:file:/*|/)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A refusal of keys that fully match `pattern`; `why` says what to do instead."""

    pattern: re.Pattern[str]
    why: str


def rule(keys: str, why: str) -> Rule:
    """Return a rule for keys separated by blanks; `*` stands for any text."""
    alternatives = "|".join(re.escape(key).replace(r"\*", ".*") for key in keys.split())
    return Rule(re.compile(alternatives, re.IGNORECASE), why)


_GUARD: Final = "SafeWriter's guarantees rest on it, so it is fixed; leave it out"
_RULES: Final = (
    rule("spark.master spark.submit.deployMode spark.remote spark.api.mode spark.connect.* spark.local.connect.*",
          "the job runs on this function's own local Spark; leave it out"),
    rule("spark.submit.pyFiles", "name Python files in pyFiles"),
    rule("spark.submit.* spark.app.id spark.home", "spark-submit is the handler's own; leave it out"),
    rule("spark.jars spark.jars.* spark.driver.extraClassPath spark.executor.extraClassPath spark.*.extraLibraryPath"
          " spark.*.userClassPathFirst spark.repl.*", "nothing is resolved at run time; add jars in a derived image"),
    rule("spark.files spark.archives", "read other files from S3 in the script, or name Python ones in pyFiles"),
    rule("spark.driver.extraJavaOptions spark.driver.defaultJavaOptions spark.executor.extraJavaOptions"
          " spark.executor.defaultJavaOptions spark.plugins spark.plugins.*",
          "the Java virtual machine is set up by the handler; leave it out"),
    rule("spark.pyspark.python spark.pyspark.driver.python spark.python.daemon.module spark.python.worker.module",
          "the image has one Python; leave it out"),
    rule("spark.executorEnv.* spark.*.appMasterEnv.* spark.*.driverEnv.*",
          "a job's settings never become environment variables; pass entryPointArguments"),
    rule("spark.local.dir spark.worker.dir spark.hadoop.hadoop.tmp.dir spark.hadoop.fs.s3a.buffer.dir",
          "the handler gives each request a directory of its own under /tmp; leave it out"),
    rule("spark.driver.host spark.driver.bindAddress spark.driver.port spark.blockManager.port"
          " spark.driver.blockManager.port", "Spark talks to itself on the loopback interface only; leave it out"),
    rule("spark.delta.logStore.* delta.logStore.* spark.hadoop.delta.logStore.* spark.hadoop.spark.delta.logStore.*",
          _GUARD),
    rule("spark.databricks.delta.commit.* spark.databricks.delta.testOnly.* spark.databricks.delta.write.txn*"
          " spark.databricks.delta.coordinatedCommits.* spark.databricks.delta.managedCommit.*"
          " spark.databricks.delta.properties.defaults.coordinatedCommits.* spark.wap.id spark.wap.branch", _GUARD),
    rule("spark.sql.catalog.spark_catalog spark.sql.catalog.spark_catalog.* spark.sql.catalog.safewriter"
          " spark.sql.catalog.safewriter.*", _GUARD),
    rule("spark.hadoop.fs.file.impl spark.hadoop.fs.s3.impl spark.hadoop.fs.s3a.impl spark.hadoop.fs.s3n.impl"
          " spark.hadoop.fs.AbstractFileSystem.* spark.hadoop.fs.s3a.create.*"
          " spark.hadoop.fs.s3a.bucket.*.create.* spark.hadoop.fs.s3a.*committer.magic.enabled", _GUARD),
    rule("spark.hadoop.fs.s3a.endpoint spark.hadoop.fs.s3a.bucket.*.endpoint spark.hadoop.fs.s3a.path.style.access",
          "Spark and the guard must talk to one store; set AWS_ENDPOINT_URL_S3 for the function"),
    rule("spark.hadoop.fs.s3a.*access.key spark.hadoop.fs.s3a.*secret.key spark.hadoop.fs.s3a.*session.token"
          " spark.hadoop.fs.s3.awsAccessKeyId spark.hadoop.fs.s3.awsSecretAccessKey spark.hadoop.fs.s3n.aws*"
          " spark.hadoop.hadoop.security.credential.provider.path",
          "secrets do not belong in an event; give the function's role the permission"),
    rule("spark.hadoop.fs.s3a.aws.credentials.provider",
          "Spark and the guard share the function's role; set it for one bucket (fs.s3a.bucket.NAME.…) instead"),
)  # fmt: skip


def why_fixed(key: str) -> str | None:
    """Return why a job may not set a setting, and what to do instead; None if it may."""
    return next((fixed.why for fixed in _RULES if fixed.pattern.fullmatch(key)), None)


def why_not_secret(key: str) -> str | None:
    """Return the same for a setting whose value is in Secrets Manager, which may be a key for one bucket."""
    return None if _KEYS_OF_A_BUCKET.fullmatch(key) else why_fixed(key)


def why_replaced(value: str) -> str | None:
    """Return how Spark, Hadoop or Iceberg would expand a value, and what to do instead; None if they keep it."""
    if "${" in value:
        # Hadoop expands ${env.NAME}, and Spark ${env:NAME}, to variables of the function, which include its
        # credentials.
        return "holds ${, which Spark and Hadoop replace by variables of the function; write the value itself"
    if value.strip().startswith("env:"):  # Spark cuts off blanks
        return "begins with env:, which Iceberg replaces by variables of the function; write the value itself"
    return None


def is_outside_tmp(value: str) -> bool:
    """Return whether a value is a local path outside /tmp, where nothing can be written."""
    if not _LOCAL.match(value):
        return False
    path = posixpath.normpath("/" + _LOCAL.sub("", value, count=1).lstrip("/"))
    return not path.startswith("/tmp/")  # noqa: S108 - compared, not opened
