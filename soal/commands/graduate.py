"""`soal graduate`: hand a job that has outgrown the function to EMR Serverless, as the same run.

An event has the fields of EMR Serverless' StartJobRun. The job keeps the run's key and fingerprint: it skips committed
writes and settles an open write first.
https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.json import JSON

from handler.input_errors import InputError
from handler.request.job import requested
from handler.settings import read_settings
from safewriter.session import LOG_STORE
from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.view import View
from soal.invocation.event import read_event, with_token
from soal.options import DryRun, EndpointUrl, Event, Json
from soal.remote.aws import aws_client
from soal.remote.failure import AWS_ERRORS, failed
from soal.shipped import shipped_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEEDED: Final = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.delta.", "spark.databricks.delta.")
"""The image's settings that the guard needs; the others fit a single small machine."""
_OWN: Final = ("SOAL_CONF", "SOAL_CONF_ALLOW")
"""The function's variables with settings for its jobs; `graduate` reads the same ones."""
_DRIVER: Final = "spark.emr-serverless.driverEnv"


def graduate(
    event: Event,
    application_id: Annotated[str, typer.Option(help="The EMR Serverless application.")],
    execution_role_arn: Annotated[str, typer.Option(help="The role that the job runs with there.")],
    checkpoint_bucket: Annotated[
        str, typer.Option(envvar="SW_CHECKPOINT_BUCKET", help="The function's own checkpoint bucket.")
    ],
    py_files: Annotated[
        list[str] | None, typer.Option(help="s3:// zip with SafeWriter and the script's other imports.")
    ] = None,
    jars: Annotated[list[str] | None, typer.Option(help="s3:// jars: soal-logstore.jar, Delta's.")] = None,
    timeout_minutes: Annotated[int, typer.Option(min=0, help="The run's timeout; 0 uses the application's own.")] = 0,
    endpoint_url: EndpointUrl = None,
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Hand the job to EMR Serverless, as the same run. Exit code 1 if EMR refused it."""
    out = Output(as_json=as_json)
    request = job_run(
        with_token(read_event(event)), application_id, execution_role_arn, checkpoint_bucket, py_files or (), jars or ()
    )
    if timeout_minutes:
        request["executionTimeoutMinutes"] = timeout_minutes
    if dry_run:
        out.show(_view(request))
        out.remark("nothing was started")
        return
    try:
        answer = aws_client("emr-serverless", endpoint_url).start_job_run(**request)
    except AWS_ERRORS as error:
        todo = "correct it and try again; a clientToken never starts a job twice"
        raise failed(f"application {application_id}: {error}", error, todo) from error
    out.show(_view({name: answer[name] for name in ("applicationId", "jobRunId", "arn")}))


def _view(document: dict[str, Any]) -> View:
    return View(document, (JSON(json.dumps(document)).text,))


def job_run(
    event: object,
    application_id: str,
    execution_role_arn: str,
    checkpoint_bucket: str,
    py_files: Sequence[str] = (),
    jars: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the parameters of StartJobRun for an event. Raises `Problem` if the function would refuse the event."""
    try:
        variables = {name: value for name in _OWN if (value := os.environ.get(name))}
        settings = read_settings({**variables, "SW_CHECKPOINT_BUCKET": checkpoint_bucket})
        job = requested(event, settings, request_id="").job
    except InputError as error:
        raise Problem(str(error), todo="correct the event; see docs/reference/event") from error
    if job.client_token is None:
        raise Problem(
            "the event has no clientToken, so EMR cannot continue the same run",
            todo="give a job document with a clientToken: that of the run, if it has begun",
        )
    confs = {
        **{key: value for key, value in shipped_settings().items() if key.startswith(_NEEDED)},
        "spark.delta.logStore.s3n.impl": LOG_STORE,  # EMR reads the same tables by this scheme, too
        f"{_DRIVER}.SW_CHECKPOINT_BUCKET": checkpoint_bucket,
        f"{_DRIVER}.SOAL_RUN_KEY": job.run_key,
        f"{_DRIVER}.SOAL_JOB_FINGERPRINT": job.fingerprint,
        **job.conf,
    }
    options = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    for option, values in (("--py-files", [*map(str, job.py_files), *py_files]), ("--jars", list(jars))):
        if values:
            options += [option, ",".join(values)]
    return {
        "applicationId": application_id,
        "clientToken": job.client_token.replace(":", "-"),  # EMR's own, which allows no colon; the run key stays
        "executionRoleArn": execution_role_arn,
        **({"name": job.name} if job.name else {}),
        **({"tags": dict(job.tags)} if job.tags else {}),
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": str(job.entry_point),
                "entryPointArguments": list(job.arguments),
                "sparkSubmitParameters": shlex.join(options),
            }
        },
    }
