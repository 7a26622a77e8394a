"""Which Spark settings a job may bring: everything that does not leave the sandbox and does not switch off the guard.

The rules protect from mistakes, not from the script itself, which can do whatever the function's role allows.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.usage import UsageError, found

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_conf"]

_VALUE_MAX_LENGTH: Final = 4096
_CONF_MAX_ENTRIES: Final = 200
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.\-]{1,250}")
_LOCAL: Final = re.compile(r"(?:file:/*|/)", re.IGNORECASE)
_MEMORY: Final = re.compile(r"[1-9][0-9]{0,6}[kmgtKMGT]b?")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Keys that match `pattern` as a whole are refused; `why` says what to do instead."""

    pattern: re.Pattern[str]
    why: str


def _rule(keys: str, why: str) -> _Rule:
    """Make a rule from keys separated by blanks; `*` stands for any text."""
    alternatives = "|".join(re.escape(key).replace(r"\*", ".*") for key in keys.split())
    return _Rule(re.compile(alternatives, re.IGNORECASE), why)


_GUARD: Final = "SafeWriter's guarantees rest on it, so it is fixed; leave it out"
_RULES: Final = (
    _rule("spark.master spark.submit.deployMode spark.remote spark.api.mode spark.connect.* spark.local.connect.*",
          "the job runs on this function's own local Spark; leave it out"),
    _rule("spark.submit.pyFiles", "name Python files in pyFiles"),
    _rule("spark.submit.* spark.app.id spark.home", "spark-submit is the handler's own; leave it out"),
    _rule("spark.jars spark.jars.* spark.driver.extraClassPath spark.executor.extraClassPath spark.*.extraLibraryPath"
          " spark.*.userClassPathFirst spark.repl.*", "nothing is resolved at run time; add jars in a derived image"),
    _rule("spark.files spark.archives", "read other files from S3 in the script, or name Python ones in pyFiles"),
    _rule("spark.driver.extraJavaOptions spark.driver.defaultJavaOptions spark.executor.extraJavaOptions"
          " spark.executor.defaultJavaOptions spark.plugins spark.plugins.*",
          "the Java virtual machine is set up by the handler; leave it out"),
    _rule("spark.pyspark.python spark.pyspark.driver.python spark.python.daemon.module spark.python.worker.module",
          "the image has one Python; leave it out"),
    _rule("spark.executorEnv.* spark.*.appMasterEnv.* spark.*.driverEnv.*",
          "a job's settings never become environment variables; pass entryPointArguments"),
    _rule("spark.local.dir spark.worker.dir spark.hadoop.hadoop.tmp.dir spark.hadoop.fs.s3a.buffer.dir",
          "the handler gives each request a directory of its own under /tmp; leave it out"),
    _rule("spark.driver.host spark.driver.bindAddress spark.driver.port spark.blockManager.port"
          " spark.driver.blockManager.port", "Spark talks to itself on the loopback interface only; leave it out"),
    _rule("spark.delta.logStore.* delta.logStore.* spark.hadoop.delta.logStore.* spark.hadoop.spark.delta.logStore.*",
          _GUARD),
    _rule("spark.databricks.delta.commit.* spark.databricks.delta.testOnly.* spark.databricks.delta.write.txn*"
          " spark.databricks.delta.coordinatedCommits.* spark.databricks.delta.managedCommit.*"
          " spark.databricks.delta.properties.defaults.coordinatedCommits.* spark.wap.id spark.wap.branch", _GUARD),
    _rule("spark.sql.catalog.spark_catalog spark.sql.catalog.spark_catalog.*", _GUARD),
    _rule("spark.hadoop.fs.s3.impl spark.hadoop.fs.s3a.impl spark.hadoop.fs.s3n.impl"
          " spark.hadoop.fs.AbstractFileSystem.* spark.hadoop.fs.s3a.create.*"
          " spark.hadoop.fs.s3a.bucket.*.create.*", _GUARD),
    _rule("spark.hadoop.fs.s3a.endpoint spark.hadoop.fs.s3a.bucket.*.endpoint spark.hadoop.fs.s3a.path.style.access",
          "Spark and the guard must talk to one store; set AWS_ENDPOINT_URL_S3 for the function"),
    _rule("spark.hadoop.fs.s3a.*access.key spark.hadoop.fs.s3a.*secret.key spark.hadoop.fs.s3a.*session.token"
          " spark.hadoop.fs.s3.awsAccessKeyId spark.hadoop.fs.s3.awsSecretAccessKey spark.hadoop.fs.s3n.aws*"
          " spark.hadoop.hadoop.security.credential.provider.path",
          "secrets do not belong in an event; give the function's role the permission"),
    _rule("spark.hadoop.fs.s3a.aws.credentials.provider",
          "Spark and the guard share the function's role; set it for one bucket (fs.s3a.bucket.NAME.…) instead"),
)  # fmt: skip


def check_conf(conf: Mapping[str, str], field: str) -> None:
    """Raise `UsageError` for the first setting that a job may not bring; `field` is where the settings were found."""
    if len(conf) > _CONF_MAX_ENTRIES:
        raise UsageError(field, f"has {len(conf)} settings; {_CONF_MAX_ENTRIES} are allowed")
    for key, value in conf.items():
        path = f"{field}.{key if key.isprintable() else found(key)}"
        if problem := _problem(key, value):
            raise UsageError(path, problem)


def _problem(key: str, value: str) -> str | None:
    for rule in _RULES:
        if rule.pattern.fullmatch(key):
            return f"may not be set by a job: {rule.why}"
    if not _KEY.fullmatch(key):
        return "is not the name of a Spark setting; it must begin with 'spark.'"
    if len(value) > _VALUE_MAX_LENGTH:
        return f"has {len(value)} characters; {_VALUE_MAX_LENGTH} are allowed"
    if not value.isprintable():
        return f"holds a control character: {found(value)}"
    if _LOCAL.match(value) and not _inside_tmp(value):
        return f"{found(value)} is outside /tmp, and nothing else can be written here; use an s3a:// path or /tmp"
    return _special(key, value)


def _special(key: str, value: str) -> str | None:
    if key == "spark.sql.catalogImplementation" and value != "in-memory":
        return "only 'in-memory' is in this image; use tables by path or an Iceberg catalog"
    if key == "spark.driver.memory" and not _MEMORY.fullmatch(value):
        return f"must be a size such as 1500m or 2g, not {found(value)}"
    if key == "spark.driver.cores" and not re.fullmatch(r"[1-9][0-9]?", value):
        return f"must be a number of cores from 1 to 99, not {found(value)}"
    return None


def _inside_tmp(value: str) -> bool:
    path = posixpath.normpath("/" + _LOCAL.sub("", value, count=1).lstrip("/"))
    return path.startswith("/tmp/")  # noqa: S108 - compared, not opened
