"""Everything outside the handler, in memory."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.response import StreamingBody
from jsonschema import Draft202012Validator

from handler.app import handle
from handler.json_document import schema_text
from handler.outcome.result import Result
from handler.process.child import Ended
from handler.secrets import Secrets
from handler.services import Services
from safewriter.deadline import epoch_ms
from safewriter.record import journal
from safewriter.record.document import Status
from safewriter.settle.supervisor import WriteReport
from tests.support.memory_store import MemoryObjectStore
from tests.support.walks import new_walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.process.log import JobLog
    from handler.spark.command import Command
    from safewriter.deadline import Deadline
    from safewriter.record.journal import Event

EVENT = {
    "script": "s3://scripts/job.py",
    "clientToken": "t",
    "name": "nightly",
    "entryPointArguments": ["--password", "hunter22"],
}
NAMES = ("PGPASSWORD", "API_PASS", "spark.sql.catalog.lake.credential")
REFERENCES = dict.fromkeys(NAMES, "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf")
COMMITTED = WriteReport("s3://lake/a", "delta", None, Status.COMMITTED, 7, 10, 100, None, None, "s3://c/1")
UNKNOWN = WriteReport("s3://lake/a", "delta", None, Status.UNKNOWN, None, None, None, "S3 is gone", None, "s3://c/1")


class World:
    """Everything outside the handler, in memory; the child is a function."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp = tmp_path
        self.store = MemoryObjectStore()
        self.end: dict[str, Any] = {"exit_code": 0, "signal": None, "stop": None}
        self.prints = b""
        self.jvm: Any = None
        """The JVM of a job that rests."""
        self.event_log = b""
        """The log that Spark has not ended when the job ends."""
        self.fails: Exception | None = None
        self.reports: Any = (COMMITTED,)
        self.invoked: list[tuple[str, Any]] | Exception = []
        self.journal_doubt: str | None = None
        self.told: list[tuple[Event, dict[str, str]]] = []
        self.settled = 0
        self.request_id = "request"
        self.command: Command | None = None
        self.began_without_record = self.may_run = False
        self.deadline: Deadline | None = None
        self.may_leave = False
        """Whether an invocation may leave files behind."""
        self.secrets: Secrets | Exception = Secrets()
        self.properties = ""
        self.code: dict[str, bytes | Exception] = {}
        """The scripts and Python files on S3 by key; all others are one `x`."""

    @contextmanager
    def start_child(self, command: Command, output: JobLog, **_: object) -> Iterator[World]:
        self.command = command
        self.began_without_record = not self.stored("runs/")
        options = list(command.submission)
        self.properties = Path(options[options.index("--properties-file") + 1]).read_text()
        journal.append(command.environment["SOAL_JOURNAL"], "python_started")
        for report in () if isinstance(self.reports, Exception) else self.reports:
            nonce = report.checkpoint
            journal.append(
                command.environment["SOAL_JOURNAL"], "write_opened", checkpoint=report.checkpoint, nonce=nonce
            )
            journal.append(command.environment["SOAL_JOURNAL"], "succeeded", nonce=nonce)
        for event, fields in self.told:
            journal.append(command.environment["SOAL_JOURNAL"], event, **fields)
        if self.event_log:
            sandbox = Path(command.environment["TMPDIR"]).parent
            Path(sandbox, "spark-events", "local-1.inprogress").write_bytes(self.event_log)
        output.pump(io.BufferedReader(io.BytesIO(self.prints)))
        try:
            yield self
        finally:
            self.may_run = Path(command.variables["SOAL_GO"]).exists()

    def supervise(self, *_: object, **__: object) -> Ended:
        if self.fails is not None:
            raise self.fails
        now = epoch_ms()
        own_exit = 0 if self.end["exit_code"] == 0 else None
        end = {"own_exit": own_exit, **self.end}
        return Ended(**end, started_ms=now, ended_ms=now, peak_mb=1, survivors=frozenset())

    def renew_leases(self) -> None: ...

    def doubt(self) -> str | None:
        return self.journal_doubt

    def settle(self, *, budget_ms: int) -> Any:
        assert budget_ms > 0
        self.settled += 1
        if isinstance(self.reports, Exception):
            raise self.reports
        return self.reports

    def get_object(self, **names: str) -> dict[str, Any]:
        body = self.code.get(names["Key"], b"x")
        if isinstance(body, Exception):
            raise body
        return {"ContentLength": len(body), "Body": StreamingBody(io.BytesIO(body), len(body))}

    def invoke(self, function: str, payload: bytes) -> str:
        if isinstance(self.invoked, Exception):
            raise self.invoked
        self.invoked.append((function, json.loads(payload)))
        return "request-2"

    def read_secrets(self, references: Any) -> Secrets:
        assert list(references) == list(REFERENCES)
        if isinstance(self.secrets, Exception):
            raise self.secrets
        return self.secrets

    def handle(self, event: object = EVENT, **environment: str) -> Result:
        services = Services(
            client=lambda: self,
            store=lambda _: self.store,
            start_child=self.start_child,
            supervision=lambda *_, **__: self,  # type: ignore[arg-type]
            invoke=self.invoke,
            **({"read_secrets": self.read_secrets} if "SOAL_SECRETS" in environment else {}),  # type: ignore[arg-type]
        )
        variables = {"SW_CHECKPOINT_BUCKET": "checkpoints", "TMPDIR": str(self.tmp), **environment}
        result = handle(event, new_walk(self.deadline, request_id=self.request_id), variables, services)
        Draft202012Validator(json.loads(schema_text(Result))).validate(result.document())
        assert self.may_leave or list(self.tmp.iterdir()) == []
        return result

    def stored(self, prefix: str) -> list[dict[str, Any]]:
        found = [self.store.get(listed.key) for listed in self.store.list(prefix)]
        return [json.loads(one.body) for one in found if one is not None]
