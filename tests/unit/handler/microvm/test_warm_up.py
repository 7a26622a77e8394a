"""The warm-up without a JVM: which jobs it runs, where, and what it leaves."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from handler import credentials
from handler.microvm import warm_up
from handler.microvm.warm_up import WarmUp, WarmUpError, warm_up_folder
from handler.outcome.state import State
from safewriter.deadline import epoch_ms
from safewriter.objects import s3

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.stages.progress import Progress

ROOT = Path(__file__).parents[4]
ENDPOINT = "http://127.0.0.1:1"
S3 = f"""#!{sys.executable}
import os, sys
from pathlib import Path
Path(os.environ["SEEN"]).write_text("\\n".join(sys.argv[1:]))
print({ENDPOINT!r}, flush=True)
sys.stdin.read()
Path(os.environ["SEEN"]).with_name("ended").touch()
"""


class Handler:
    """What `handle` is to the warm-up: it keeps each job, and what this process's variables were meanwhile."""

    def __init__(self) -> None:
        self.tidied: list[int] = []
        self.is_tidy = True
        self.services: Any = SimpleNamespace(reuse=SimpleNamespace(sandbox="a JVM", tidy=self._tidy))
        self.state = State.SUCCESS
        self.events: list[Mapping[str, Any]] = []
        self.environments: list[Mapping[str, str]] = []
        self.variables: list[dict[str, str]] = []
        self.progress: list[Progress] = []

    def __call__(self, event: Any, progress: Progress, environment: Mapping[str, str], services: Any) -> Any:
        assert services is self.services
        self.events.append(event)
        self.progress.append(progress)
        self.environments.append(environment)
        self.variables.append(dict(os.environ))
        return SimpleNamespace(state=self.state, state_details="why", warnings=("a thread is left",))

    def _tidy(self, within_s: float) -> bool:
        assert within_s > 0
        self.tidied.append(len(self.events))
        return self.is_tidy

    def arguments(self) -> list[list[str]]:
        return [event["entryPointArguments"] for event in self.events]


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Handler:
    found = Handler()
    monkeypatch.setattr(warm_up, "handle", found)
    return found


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The S3's interpreter: a program that says what it was given, and when it ended."""
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    path = tmp_path / "python"
    path.write_text(S3, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def run(handler: Handler, python: str, *, again: bool = False, environment: Any = None, **more: Any) -> None:
    WarmUp(ROOT, python=python, **more).run(environment or {}, 2048, 60_000, handler.services, again=again)


def test_the_first_of_the_jobs_has_the_lessons(handler: Handler, python: str) -> None:
    """All run the same script; each is a run of its own, with the time for which the JVM is started."""
    began_ms = epoch_ms()
    run(handler, python, rounds=3)
    assert [words[2:] for words in handler.arguments()] == [["0", "--lessons"], ["1"], ["2"]]
    assert {words[0] for words in handler.arguments()} == {ENDPOINT}
    (script,) = {event["entryPoint"] for event in handler.events}
    assert script.endswith("/warm_up_job.py")
    assert len({event["clientToken"] for event in handler.events}) == 3
    assert len({progress.invocation.run_id for progress in handler.progress}) == 3
    for progress in handler.progress:
        deadline = progress.invocation.deadline
        assert deadline.at_ms - deadline.started_ms == 60_000
        assert deadline.started_ms >= began_ms
        assert progress.invocation.memory_mb == 2048


def test_a_copy_at_the_build_runs_one_more(handler: Handler, python: str) -> None:
    """Lambda sees by it which memory a start needs first; lessons are no part of a start."""
    run(handler, python, again=True)
    assert [words[2:] for words in handler.arguments()] == [["0"]]


def test_java_collects_its_garbage_before_the_snapshot(handler: Handler, python: str) -> None:
    """A copy would else do that in its job. A JVM that does not say that it has is in no snapshot."""
    run(handler, python, rounds=2)
    assert handler.tidied == [2]
    handler.is_tidy = False
    with pytest.raises(WarmUpError, match="did not come to rest"):
        run(handler, python, rounds=1)


def test_lessons_may_be_left_out(handler: Handler, python: str) -> None:
    """As tests do."""
    run(handler, python, rounds=1, lessons=False)
    assert [words[2:] for words in handler.arguments()] == [["0"]]


def test_no_place_or_secret_of_the_account_reaches_a_warm_up_job(
    handler: Handler, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings are the image's but for those; its S3 is this machine's, and its keys open nothing else."""
    account = {
        "SW_CHECKPOINT_BUCKET": "checkpoints",
        "SCRIPT_BUCKET": "scripts",
        "SPARK_SCRIPT": "job.py",
        "SOAL_ENTRY_POINT": "s3://scripts/job.py",
        "SOAL_SECRETS": '{"PGPASSWORD": "arn"}',
        "SOAL_TURNS": "{}",
    }
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "real")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://real")
    monkeypatch.setenv("AWS_PROFILE", "real")
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    before = dict(os.environ)
    run(handler, python, rounds=1, environment={**account, "SOAL_JIT": "full"})
    assert handler.environments == [{"SOAL_JIT": "full", "SW_CHECKPOINT_BUCKET": "warm-up-checkpoints"}]
    (during,) = handler.variables
    assert (during["AWS_ENDPOINT_URL_S3"], during["AWS_ACCESS_KEY_ID"]) == (ENDPOINT, "WARMUP")
    assert during["AWS_SESSION_TOKEN"] != "real"
    assert during.keys().isdisjoint({"AWS_ENDPOINT_URL", "AWS_PROFILE"})
    assert dict(os.environ) == before


def test_a_job_that_fails_ends_the_warm_up(handler: Handler, python: str, tmp_path: Path) -> None:
    """The build ends with its reason; the S3 ends, and the variables are as before, in either case."""
    handler.state = State.FAILED
    before = dict(os.environ)
    with pytest.raises(WarmUpError, match="warm-up job 0 ended as FAILED: why"):
        run(handler, python)
    assert len(handler.events) == 1
    assert (tmp_path / "ended").exists()
    assert dict(os.environ) == before


def test_a_warm_up_without_a_jvm_is_none(handler: Handler, python: str) -> None:
    """The result's warnings say why the JVM did not stay."""
    handler.services.reuse.sandbox = None
    with pytest.raises(WarmUpError, match="left no JVM: a thread is left"):
        run(handler, python)


def test_an_s3_that_does_not_start_ends_the_warm_up(handler: Handler, tmp_path: Path) -> None:
    """No job runs on another one."""
    with pytest.raises(WarmUpError, match="did not start"):
        run(handler, "/bin/false")
    assert handler.events == []
    assert not (tmp_path / "seen").exists()


def test_an_s3_that_does_not_end_is_killed(handler: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of it may be in the snapshot."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\nimport os\nprint(os.getpid(), flush=True)\nwhile True:\n    pass\n")
    path.chmod(0o755)
    monkeypatch.setattr(warm_up, "_END_TIMEOUT_S", 0.1)
    run(handler, str(path), rounds=1)
    pid = int(handler.arguments()[0][0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_client_of_the_warm_up_remains(handler: Handler, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections and keys would be in the snapshot."""
    made: list[Any] = []

    def handle(*_: Any) -> Any:
        made.append(s3.shared_client())
        return SimpleNamespace(state=State.SUCCESS, state_details="", warnings=())

    monkeypatch.setattr(warm_up, "handle", handle)
    run(handler, python, rounds=1)
    with warm_up._with(ENDPOINT):
        assert s3.shared_client() is not made[0]


@pytest.mark.slow
def test_the_s3_has_the_scripts_and_ends_with_the_warm_up(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one, in a process of its own: the lake and the checkpoints are empty buckets of it."""
    found: dict[str, Any] = {}

    def handle(event: Any, *_: Any) -> Any:
        s3 = boto3.client("s3")
        found["endpoint"] = event["entryPointArguments"][0]
        for uri in (event["entryPoint"], *event["pyFiles"]):
            bucket, _, key = uri.removeprefix("s3://").partition("/")
            found[key] = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        for bucket in ("warm-up-lake", "warm-up-checkpoints"):
            s3.head_bucket(Bucket=bucket)
        return SimpleNamespace(state=State.SUCCESS, state_details="", warnings=())

    monkeypatch.setattr(warm_up, "handle", handle)
    run(handler, sys.executable, rounds=1)
    assert found["warm_up_job.py"] == Path(warm_up.__file__).with_name("warm_up_job.py").read_bytes()
    assert found["train.py"] == (ROOT / "image/archive/train.py").read_bytes()
    client = boto3.client("s3", endpoint_url=found["endpoint"])
    with pytest.raises(EndpointConnectionError):
        client.list_buckets()


def test_the_files_are_the_images_or_the_working_tree_s(tmp_path: Path) -> None:
    """The image has them below SOAL_HOME."""
    assert warm_up_folder(tmp_path) == ROOT
    (tmp_path / "warm-up").mkdir()
    assert warm_up_folder(tmp_path) == tmp_path / "warm-up"


def test_boto3_in_a_job_takes_the_credentials_that_the_handler_serves_meanwhile(
    handler: Handler, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build has no credentials in its variables: then a job asks the handler, and boto3 wants a token."""
    documents: list[Any] = []

    def handle(*given: Any) -> Any:
        documents.append(credentials._document())
        return handler(*given)

    monkeypatch.setattr(warm_up, "handle", handle)
    run(handler, python, rounds=1)
    assert documents[0].keys() == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}
