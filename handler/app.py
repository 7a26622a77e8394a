"""The Lambda function: event → job → script → command → child → outcome → response."""

from __future__ import annotations

import json
import os
import traceback
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from handler import observability
from handler.outcome.continuation import has_progressed, next_invocation, unwrapped
from handler.outcome.outcome import Evidence, is_our_fault, judge, of_error
from handler.outcome.report import Facts, result_of
from handler.outcome.response import deliver
from handler.process.bounded import OverdueError, within
from handler.process.child import Ladder, start
from handler.process.log import Output
from handler.process.tree import close_to_others
from handler.redaction.redact import Redactor
from handler.request.event import parse_event
from handler.request.job import Job
from handler.request.nesting import check_nesting
from handler.runs.records import Runs, result_key
from handler.runs.supervisor import Guard
from handler.sandbox.ground import clean_all
from handler.sandbox.sandbox import forbids_execution, oom_kills, open_sandbox
from handler.sandbox.script import download, place
from handler.secrets import Secrets, read_secrets
from handler.settings import read_settings
from handler.spark.archive import why_unused
from handler.spark.command import Attempt, check, compose, spark_file, this_machine
from handler.spark.missing import MissingWatch, read_missing
from safewriter.deadline import Deadline, epoch_ms
from safewriter.objects import StoreError
from safewriter.objects.s3 import open_store, s3_client
from safewriter.record.journal import Journal
from safewriter.settle.supervisor import OpenWrites, Supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from handler.outcome.outcome import Outcome
    from handler.outcome.response import Result
    from handler.sandbox.sandbox import Sandbox
    from handler.secrets import SecretReference
    from handler.settings import HandlerSettings
    from handler.spark.command import Command
    from safewriter.deadline import Clock
    from safewriter.objects import Location, ObjectStore

__all__ = ["Services", "handle", "lambda_handler"]

# Shares of the lead time, as divisors, that are kept free for what comes after a step.
_ANSWER_RESERVE: Final = 7
_RECORD_RESERVE: Final = 20


def _invoke(function: str, payload: bytes) -> str:
    """Invoke a function asynchronously; return the request id."""
    import boto3  # most runs never continue themselves
    from botocore.config import Config

    client = boto3.client("lambda", config=Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2}))
    answer = client.invoke(FunctionName=function, InvocationType="Event", Payload=payload)
    return str(answer["ResponseMetadata"]["RequestId"])


@dataclass(frozen=True, slots=True)
class Services:
    """What the handler does to the world outside; tests put others in their place."""

    client: Callable[[], Any] = lambda: s3_client(tries=3)
    store: Callable[[Location], ObjectStore] = open_store
    start_child: Callable[..., AbstractContextManager[Any]] = start
    supervision: Callable[..., Supervision] = Supervision
    invoke: Callable[[str, bytes], str] = _invoke
    read_secrets: Callable[[Mapping[str, SecretReference]], Secrets] = read_secrets
    clock: Clock = epoch_ms


_SERVICES: Final = Services()
_warm = False


@observability.metrics.log_metrics
@observability.logger.inject_lambda_context(clear_state=True)
def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run the job that an event describes; return its result document, or raise `JobFailed` with it."""
    global _warm
    close_to_others()
    cold_start, _warm = not _warm, True
    facts = Facts(
        deadline=Deadline(epoch_ms() + context.get_remaining_time_in_millis(), epoch_ms()),
        request_id=context.aws_request_id,
        run_id=uuid.uuid4().hex,
        memory_mb=int(context.memory_limit_in_mb),
        cold_start=cold_start,
        function=context.invoked_function_arn,
    )
    result = handle(event, facts, os.environ)
    observability.count(result)
    return deliver(result, facts.settings)


def handle(event: object, facts: Facts, environment: Mapping[str, str], services: Services = _SERVICES) -> Result:
    """Do everything but raise."""
    facts.redactor = Redactor.of_environment(environment)
    try:
        outcome = _attempt(event, facts, environment, services)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the answer is a document
        outcome = of_error(error, facts.writes, started=facts.started)
        trace = "".join(traceback.format_exception(error)) if is_our_fault(outcome) else outcome.details
        observability.logger.error(facts.redactor(trace))
    return _recorded(facts, outcome, services)


def _attempt(event: object, facts: Facts, environment: Mapping[str, str], services: Services) -> Outcome:
    settings = facts.settings = read_settings(environment)
    check_nesting(event)
    facts.event, facts.continuation = unwrapped(event)
    request = parse_event(facts.event, settings)
    if facts.continuation is not None:
        request = replace(request, client_token=facts.continuation.client_token)
    job = facts.job = Job.of(request, settings, facts.request_id)
    machine = this_machine(facts.memory_mb)
    check(job, settings, machine)
    secrets = services.read_secrets(settings.secrets)
    facts.redactor = facts.redactor.knowing_secrets(secrets.values.values()).knowing(job.arguments)
    facts.redactor = facts.redactor.knowing_settings(job.conf)
    os.environ.update(secrets.of_catalogs)  # for the settling of what the job leaves open, in this process
    facts.warnings.extend(request.warnings)
    if forbids_execution(settings.tmp):
        facts.warnings.append(
            f"{settings.tmp} is mounted noexec, so Java cannot load the native libraries that it unpacks there (snappy,"
            " zstd, lz4)"
        )
    with _ground(settings, facts), open_sandbox(settings.tmp) as sandbox:
        attempt = Attempt.of(facts.run_id, facts.request_id, facts.deadline)
        files = place(job, sandbox)
        command = compose(job, files, sandbox, settings, machine, attempt, environment, secrets)
        with Journal(sandbox.journal) as journal:  # before the child is there: only what is open outlasts what it does
            return _supervised(command, sandbox, journal, job, settings, facts, services)


@contextmanager
def _ground(settings: HandlerSettings, facts: Facts) -> Iterator[None]:
    """Give the job the directories of this function as the first one had them, and leave them so."""
    lead_ms = facts.deadline.lead_ms(settings.guard.warn_before_ms)

    def clean(leave_ms: int) -> None:
        said = clean_all(settings.own_directories, lambda: facts.deadline.remaining_ms() > leave_ms)
        facts.warnings.extend(one for one in said if one not in facts.warnings)

    clean(leave_ms=facts.deadline.remaining_ms() // 2)
    try:
        yield
    finally:
        clean(leave_ms=lead_ms // _ANSWER_RESERVE)


def _begin(
    job: Job, sandbox: Sandbox, journal: Journal, settings: HandlerSettings, facts: Facts, services: Services
) -> Guard:
    """Record the attempt and fetch the code."""
    runs = Runs(services.store(settings.guard.checkpoint_bucket), services.clock)
    facts.run = runs.begin(job, run_id=facts.run_id, request_id=facts.request_id, deadline=facts.deadline)
    observability.name_run(facts.run.record)
    with facts.timed("script_download_ms"):
        download(job, place(job, sandbox), services.client())
    supervision = services.supervision(journal, settings.guard)
    return Guard(supervision, runs, facts.run, settings.guard.warn_before_ms)


def _supervised(
    command: Command,
    sandbox: Sandbox,
    journal: Journal,
    job: Job,
    settings: HandlerSettings,
    facts: Facts,
    services: Services,
) -> Outcome:
    warn_before_ms = settings.guard.warn_before_ms
    lead_ms = facts.deadline.lead_ms(warn_before_ms)
    missing = MissingWatch(read_missing(spark_file(settings, "missing.toml")))
    writes = OpenWrites(journal)
    output = facts.output = Output(
        facts.redactor,
        log=lambda line: observability.log_job_line(line, writes.tables()),
        metric=observability.print_metric,
        watch=missing.look,
    )
    kills_before = oom_kills()
    # Spark looks for Python files while it starts; for all else Java need not wait, only the script must.
    guard = _begin(job, sandbox, journal, settings, facts, services) if job.py_files else None
    with services.start_child(command, output, clock=services.clock) as child:
        guard = guard or _begin(job, sandbox, journal, settings, facts, services)
        facts.started = True
        sandbox.go.touch()
        try:
            facts.ended = child.supervise(
                Ladder.of(facts.deadline, warn_before_ms), clock=services.clock, beat=guard.beat
            )
        finally:
            with facts.timed("settle_ms"):
                settled = guard.settle(facts.deadline.remaining_ms() - lead_ms // _ANSWER_RESERVE)
            facts.writes = settled.writes
            facts.journal = journal.entries()
    kills = max((after - kills_before.get(name, after) for name, after in oom_kills().items()), default=0)
    facts.warnings.extend(_remarks(facts, kills))
    if reason := why_unused(settings.soal_home, sandbox.archive_log):
        facts.warnings.append(f"{reason}, so Spark started slowly; scripts/setup, or a new image, makes it again")
    return judge(
        Evidence(
            ended=facts.ended,
            journal=facts.journal,
            writes=settled.writes,
            unsettled=settled.problem,
            out_of_memory_kills=kills,
            saw_java_out_of_memory=output.saw_out_of_memory,
            retry=facts.retry(),
            missing=None if missing.seen is None else missing.seen.sentence,
        )
    )


def _remarks(facts: Facts, kills: int) -> Iterator[str]:
    """Say what the state alone does not."""
    if kills:
        yield f"the kernel killed {kills} process(es) for memory while the job ran"
    if facts.output is not None and facts.output.lines_dropped:
        yield f"{facts.output.lines_dropped} lines of output were not logged, because there were too many"
    if facts.ended is not None and facts.ended.survivors:
        pids = ", ".join(str(process.pid) for process in facts.ended.survivors)
        yield f"processes {pids} of the job could not be killed"
    for write in facts.writes or ():
        if write.undo_refused is not None:
            yield f"{write.table}: the commit stays, it could not be undone: {write.undo_refused}"


def _continue(facts: Facts, outcome: Outcome, services: Services, reserve_ms: int) -> None:
    """Have the run go on, if that is allowed and worth it; only once its record is closed, or the next would wait."""
    if facts.job is None or facts.settings is None:
        return
    following = next_invocation(
        outcome.state,
        facts.event,
        facts.continuation,
        run_key=facts.job.run_key,
        continue_max=facts.settings.continue_max,
        progressed=has_progressed(facts.writes or (), facts.run_id),
    )
    if isinstance(following, str):
        facts.warnings.append(following)
    elif following is not None:
        try:
            facts.continued_by = within(
                facts.deadline.remaining_ms() - reserve_ms,
                lambda: services.invoke(facts.function, following.payload()),
            )
        except Exception as error:  # noqa: BLE001 - the SDK raises many kinds; the run can be continued by hand
            facts.warnings.append(f"the run could not be continued by the function itself: {error}")


def _recorded(facts: Facts, outcome: Outcome, services: Services) -> Result:
    """Put the document together and keep it on S3; if that fails, the answer itself says so."""
    if facts.run is None or facts.settings is None:
        return result_of(facts, outcome)
    reserve_ms = facts.deadline.lead_ms(facts.settings.guard.warn_before_ms) // _RECORD_RESERVE
    store = services.store(facts.settings.guard.checkpoint_bucket)
    run = facts.run
    try:
        within(
            facts.deadline.remaining_ms() - reserve_ms,
            lambda: facts.warnings.extend(Runs(store, services.clock).end(run, state=outcome.state.value)),
        )
    except (StoreError, OverdueError) as error:
        facts.warnings.append(f"the run's record still says RUNNING: {error}")
    _continue(facts, outcome, services, reserve_ms)
    result = result_of(facts, outcome)
    body = json.dumps(result.document(), ensure_ascii=False).encode()
    try:
        within(facts.deadline.remaining_ms() - reserve_ms, lambda: store.put(result_key(facts.run_id), body))
    except (StoreError, OverdueError) as error:
        facts.warnings.append(f"this document is not at resultUri: {error}")
        result = result_of(facts, outcome)
    return result
