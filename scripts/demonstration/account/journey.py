"""The journey: an account, the stack in it, the operator's command, and witnesses of others.

The account is one on this machine, or that of a profile; nobody can reach the containers of the latter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rich.rule import Rule
from rich.text import Text

from safewriter.environment import variables_set
from scripts.account.client import client_of, with_keys
from scripts.account.deployment import outputs
from scripts.account.server import Account, environment
from scripts.demonstration.account.record import Acts
from scripts.provision.place import ROOT
from scripts.tables.delta import view
from soal.console.problem import Failure
from soal.console.progress import JobProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rich.console import Console

    from scripts.account.deployment import Deployment
    from scripts.demonstration.stage import Claims
    from scripts.tables.delta import TableView

TABLE: Final = "accommodations"
SOURCE: Final = "raw/accommodations.csv"
_COMMAND_TIMEOUT_S: Final = 960
_POLL_S: Final = 0.5
_TRUST: Final = ("SSL_CERT_FILE", "AWS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Said:
    """The end of a command: its exit code, its stdout, read as JSON where it is JSON, and its stderr."""

    exit_code: int
    out: str
    talk: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON of any command
        try:
            return json.loads(self.out)
        except ValueError:
            return None

    @property
    def state(self) -> str | None:
        """The state of the result; None without a result."""
        return (self.document or {}).get("state")


@dataclass(frozen=True, slots=True)
class AccountOfProfile:
    """The account of a profile. `aws`: the variables of its clients and commands; `folder`: for the journey's files."""

    aws: Mapping[str, str]
    folder: Path


@dataclass(slots=True)
class Journey:
    """The account and the stack in it. `context`: the context keys of its last deployment; `made`: its outputs."""

    console: Console
    claims: Claims
    account: Account | AccountOfProfile
    deployment: Deployment
    context: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    acts: Acts = field(default_factory=Acts)
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> Account:
        """The account as one on this machine, whose containers can be reached."""
        if not isinstance(self.account, Account):
            raise TypeError("the containers of this account are not here")
        return self.account

    @property
    def stack(self) -> str:
        return self.deployment.stack

    @property
    def landing(self) -> str:
        """A bucket beside the stack, whose new objects start jobs."""
        return f"{self.stack.lower()}-landing"

    def act(self, title: str) -> None:
        """Begin a part of the journey."""
        number = self.acts.begin(title, len(self.claims.entries))
        self.console.print(Rule(f"{number}  {title}", align="left"))

    def line(self, name: str, value: str) -> None:
        """Print a fact."""
        self.console.print(Text.assemble((f"  {name:<11} ", "dim"), value), soft_wrap=True)

    def check(self, text: str, *, holds: bool) -> None:
        """Print a claim with its mark."""
        self.claims.check(text, holds=holds)

    def client(self, service: str) -> Any:  # noqa: ANN401 - a boto3 client
        """Return a client of one of the account's services, with none of the caller's own settings."""
        if service not in self._clients:
            self._clients[service] = client_of(self.account.aws, service)
        return self._clients[service]

    def deploy(self, **context: str) -> float:
        """Deploy the stack with these context keys beside the present ones, and read its outputs."""
        self.context |= context
        with JobProgress(self.console, "cdk deploy"):
            seconds = self.deployment.deploy(self.context)
        self.made = outputs(self.client("cloudformation"), self.stack)
        return seconds

    def soal(self, *words: str) -> Said:
        """Run the operator's command to its end, as somebody in the account does."""
        with JobProgress(self.console, f"soal {words[0]}"):
            return self.wait_for(self.start(*words))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the operator's command."""
        own = {"SW_CHECKPOINT_BUCKET": self.made["CheckpointBucket"], "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "soal", *words],
            cwd=ROOT,
            env={**environment(self.account.aws), **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, process: subprocess.Popen[str]) -> Said:
        """Wait for the end of a command."""
        try:
            out, talk = process.communicate(timeout=_COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise Failure(f"soal did not end: {process.args!r}", todo="see above") from error
        return Said(process.returncode, out, talk)

    def event(self, job: str, token: str, *more: str, source: str = SOURCE, table: str = TABLE) -> dict[str, Any]:
        """Return the event of a sample job."""
        arguments = ["--source", self.lake(source), "--table", self.lake(table), *more]
        script = f"s3://{self.made['ScriptBucket']}/jobs/{job}.py"
        return {"entryPoint": script, "entryPointArguments": arguments, "clientToken": token}

    def lake(self, key: str) -> str:
        return f"s3a://{self.made['LakeBucket']}/{key}"

    def event_file(self, event: dict[str, Any]) -> str:
        """Write an event for the command; return the file's path."""
        path = self.account.folder / f"{event['clientToken']}.json"
        path.write_text(json.dumps(event), encoding="utf-8")
        return str(path)

    def invoke(self, event: dict[str, Any]) -> Said:
        """Invoke the alias by the operator's command; show the outcome."""
        return self.show(self.soal("invoke", self.event_file(event), "--function", self.made["InvokeArn"], "--json"))

    def show(self, said: Said) -> Said:
        """Show what an invocation has come to."""
        found = said.document or {}
        if "state" not in found:
            self.line("no result", said.talk.strip().splitlines()[0] if said.talk.strip() else "")
            return said
        spent = found["timings"]["totalMs"] / 1000
        start = "cold" if found.get("coldStart") else "warm"
        self.line("result", f"{found['state']}, attempt {found['attempt']}, {spent:.1f} s, {start}")
        if found["state"] != "SUCCESS":
            self.line("why", str(found["stateDetails"])[:200])
        for write in found["writes"]:
            reason = f" ({write['reason']})" if write.get("reason") else ""
            self.line("write", f"{write['status']}{reason}")
        return said

    def look(self, key: str = TABLE) -> TableView:
        """Read a Delta table of the lake from outside."""
        aws = with_keys(self.account.aws)
        if "AWS_ENDPOINT_URL" in aws:
            aws["AWS_ENDPOINT_URL_S3"] = aws["AWS_ENDPOINT_URL"]
        with trusted(aws.get("AWS_CA_BUNDLE")):
            return view(self.client("s3"), self.made["LakeBucket"], key, aws)

    def table(self, key: str = TABLE) -> TableView:
        """Read a Delta table, and show it."""
        seen = self.look(key)
        self.line(key, f"version {seen.version}, {seen.rows:,} rows, {seen.files} files (read by deltalake)")
        return seen

    def run_of(self, token: str) -> dict[str, Any]:
        """Return a run as the operator's command shows it; empty, if there is none."""
        return self.soal("runs", "show", token, "--json").document or {}

    def waits(self, what: str, holds: Callable[[], bool], timeout_s: float) -> float | None:
        """Wait until something holds; return the seconds, None if it did not within the bound."""
        begun = time.monotonic()
        with JobProgress(self.console, what):
            while not holds():
                if time.monotonic() - begun > timeout_s:
                    return None
                time.sleep(_POLL_S)
        return time.monotonic() - begun


def trusted(bundle: str | None) -> AbstractContextManager[None]:
    """Let deltalake and pyiceberg trust a certificate, if there is one: they take it from these variables."""
    return variables_set({} if bundle is None else dict.fromkeys(_TRUST, bundle))
