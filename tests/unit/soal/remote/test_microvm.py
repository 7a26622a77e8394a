"""Jobs in MicroVMs, with botocore's stubs: they hold requests and answers against the service's published model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError, UnknownServiceError
from botocore.stub import Stubber
from typer.testing import CliRunner

from handler.outcome.state import State
from handler.runs.store import result_key
from safewriter.objects import StoreError
from soal.console.problem import EXIT_DEADLINE, EXIT_FAILED, EXIT_OK, EXIT_TRY_AGAIN, Problem
from soal.invocation.report import until_done
from soal.remote.microvm import RemoteMicrovms, Started
from tests.support.command_line import app
from tests.support.memory_store import MemoryObjectStore
from tests.unit.handler.outcome.test_result import error, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.invocation.report import Report

IMAGE = "arn:aws:lambda:us-east-1:123456789012:microvm-image:Soal"
ROLE = "arn:aws:iam::123456789012:role/Soal-MicrovmJobRole"
LAUNCH = {
    "imageIdentifier": IMAGE,
    "executionRoleArn": ROLE,
    "maximumDurationInSeconds": 14400,
    "ingressNetworkConnectors": ["arn:aws:lambda:us-east-1:aws:network-connector:aws-network-connector:NO_INGRESS"],
    "logging": {"cloudWatch": {"logGroup": "microvms"}},
}
ID = "mvm-1"
REMOTE = RemoteMicrovms(LAUNCH, "checkpoints")
STARTED = Started(ID, "t")
EVENT = {"entryPoint": "s3://b/job.py", "clientToken": "t"}


class Clients:
    """The clients that the command makes, each with the answers that it gets."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Any, Stubber]] = {}

    def __call__(self, service: str, _endpoint_url: str | None) -> Any:
        return self[service].client

    def __getitem__(self, service: str) -> Stubber:
        if service not in self._made:
            client = boto3.client(service)  # type: ignore[call-overload]
            self._made[service] = client, Stubber(client)
            self._made[service][1].activate()
        return self._made[service][1]

    def runs(self, payload: str, microvm_id: str = ID) -> None:
        asked = {**LAUNCH, "runHookPayload": payload}
        self["lambda-microvms"].add_response("run_microvm", described("PENDING", microvmId=microvm_id), asked)

    def has(self, *states: str, **more: str) -> None:
        for state in states:
            self["lambda-microvms"].add_response("get_microvm", described(state, **more), {"microvmIdentifier": ID})

    def fails(self, code: str, times: int = 1) -> None:
        for _ in range(times):
            self["lambda-microvms"].add_client_error("get_microvm", code)


def described(state: str, **more: str) -> dict[str, Any]:
    return {
        "microvmId": ID,
        "state": state,
        "endpoint": "https://e",
        "imageArn": IMAGE,
        "imageVersion": "1.0",
        "maximumDurationInSeconds": 14400,
        "startedAt": 0,
        **more,
    }


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clients]:
    made = Clients()
    monkeypatch.setattr("soal.remote.microvm.aws_client", made)
    yield made
    made["lambda-microvms"].assert_no_pending_responses()


def stored(state: State = State.SUCCESS) -> MemoryObjectStore:
    store = MemoryObjectStore()
    failure = None if state is State.SUCCESS else error()
    store.create(result_key(ID), json.dumps(result(state, failure).document()).encode())
    return store


def follow(store: Any, says: Any = lambda _: None) -> Report:
    return REMOTE.followed(STARTED, store, says, poll_s=0)


def test_an_event_is_the_payload_and_the_stack_says_the_rest(clients: Clients) -> None:
    """The event goes as it is, and the MicroVM's id is what the result is found by. boto3 gives the request a token: if
    it repeats it, Lambda starts one MicroVM.
    """
    clients.runs('{"entryPoint":"s3://b/jöb.py","clientToken":"t"}')
    assert REMOTE.start({"entryPoint": "s3://b/jöb.py", "clientToken": "t"}) == STARTED
    model = clients["lambda-microvms"].client.meta.service_model.operation_model("RunMicrovm")
    assert model.idempotent_members == ["clientToken"]


@pytest.mark.parametrize(
    ("state", "exit_code"),
    [(State.SUCCESS, EXIT_OK), (State.FAILED, EXIT_FAILED), (State.TIMED_OUT, EXIT_DEADLINE)],
)
def test_the_result_is_read_as_that_of_a_function(clients: Clients, state: State, exit_code: int) -> None:
    """The exit code is the same; the MicroVM need not have ended."""
    clients.has("RUNNING")
    report = follow(stored(state))
    assert report.result is not None
    assert (report.result.state, report.exit_code) == (state, exit_code)


def test_its_states_are_told_until_the_result_is_there(clients: Clients) -> None:
    """Each once; a MicroVM that somebody has suspended is waited for."""
    clients.has("PENDING", "RUNNING", "RUNNING", "SUSPENDED", "TERMINATED")
    told: list[str] = []
    store = MemoryObjectStore()

    def says(state: str) -> None:
        told.append(state)
        if state == "suspended":
            store.create(result_key(ID), json.dumps(result().document()).encode())

    assert follow(store, says).exit_code == EXIT_OK
    assert told == ["pending", "running", "suspended"]


def test_an_end_without_a_result_is_unknown(clients: Clients) -> None:
    """Nothing says that the job has failed: it may have committed everything."""
    clients.has("RUNNING", "TERMINATING")
    clients.has("TERMINATED", stateReason="MaximumDurationReached")
    report = follow(MemoryObjectStore())
    assert (report.result, report.exit_code) == (None, EXIT_FAILED)
    assert report.problem is not None
    assert report.problem.startswith(f"unknown: the MicroVM {ID} has ended (MaximumDurationReached)")
    assert "failed" not in report.problem


def test_a_microvm_that_lambda_does_not_know_yet_is_waited_for(clients: Clients) -> None:
    """Lambda's answers are eventually consistent: one right after the start is no end."""
    clients.fails("ResourceNotFoundException", times=20)
    clients.has("RUNNING")
    clients.fails("ResourceNotFoundException", times=20)
    clients.has("TERMINATED")
    told: list[str] = []
    report = follow(MemoryObjectStore(), told.append)
    assert str(report.problem).startswith(f"unknown: the MicroVM {ID} has ended, and has left no result")
    assert told == ["running"]


def test_of_a_microvm_that_lambda_does_not_know_the_result_decides(clients: Clients) -> None:
    """Without one nothing is known, not even that it has ended: `--until-done` starts no other one."""
    clients.fails("ResourceNotFoundException")
    assert follow(stored()).exit_code == EXIT_OK
    clients.fails("ResourceNotFoundException", times=21)
    with pytest.raises(Problem, match=f"unknown: Lambda does not know the MicroVM {ID}, which has left no") as caught:
        follow(MemoryObjectStore())
    assert caught.value.exit_code == EXIT_FAILED
    assert "soal runs show t" in caught.value.todo


def test_an_unknown_end_names_the_token_of_the_next_attempt(clients: Clients) -> None:
    """`soal` may have drawn it: the same event without it would be another run, and write again."""
    clients.has("TERMINATED")
    assert "the same clientToken, t, or the sweeper" in str(follow(MemoryObjectStore()).problem)
    clients.has("TERMINATED")
    nameless = REMOTE.followed(Started(ID, None), MemoryObjectStore(), lambda _: None, poll_s=0)
    assert "the same clientToken or the sweeper" in str(nameless.problem)


def test_the_result_is_asked_for_after_the_state(clients: Clients) -> None:
    """A job that stores it and ends its MicroVM between the two requests is not unknown."""
    clients.has("TERMINATED")
    store = MemoryObjectStore()
    asked = clients["lambda-microvms"].client.meta.events

    def write(**_: Any) -> None:
        store.create(result_key(ID), json.dumps(result().document()).encode())

    asked.register("after-call.lambda-microvms.GetMicrovm", write)
    assert follow(store).exit_code == EXIT_OK


def test_something_else_at_the_results_place_is_no_result(clients: Clients) -> None:
    """It is shown, and the exit code is that of a failure."""
    clients.has("RUNNING")
    store = MemoryObjectStore()
    store.create(result_key(ID), b"<html>")
    report = follow(store)
    assert (report.result, report.exit_code) == (None, EXIT_FAILED)
    assert "<html>" in str(report.problem)


def test_an_error_that_passes_is_waited_out(clients: Clients) -> None:
    """Twenty in a row, but no more."""
    for state in ("RUNNING", "TERMINATED"):
        clients.fails("ThrottlingException", times=20)
        clients.has(state)
    assert str(follow(MemoryObjectStore()).problem).startswith("unknown: ")
    clients.fails("ThrottlingException", times=21)
    with pytest.raises(Problem, match="goes on, but") as caught:
        follow(stored())
    assert caught.value.exit_code == EXIT_TRY_AGAIN


def test_who_may_not_look_hears_that_it_goes_on(clients: Clients) -> None:
    """Of the two rights that it takes: to see the MicroVM, and to read and list its results."""
    clients.fails("AccessDeniedException")
    with pytest.raises(Problem, match=f"{ID} goes on, but") as caught:
        follow(MemoryObjectStore())
    assert "lambda:GetMicrovm" in caught.value.todo

    class Forbidden(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> None:
            del max_bytes
            raise StoreError(key) from ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")

    clients.has("RUNNING")
    with pytest.raises(Problem, match="goes on, but") as caught:
        follow(Forbidden())
    assert "s3:ListBucket" in caught.value.todo


@pytest.mark.parametrize("code", ["AccessDenied", "403", "NoSuchBucket", "ValidationError", "UnrecognizedClient"])
def test_an_error_that_stays_is_not_waited_out(clients: Clients, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Of Lambda or of the bucket: the first one ends the waiting."""
    monkeypatch.setattr("soal.remote.microvm.time.sleep", pytest.fail)
    clients.fails(code)
    with pytest.raises(Problem, match="goes on, but"):
        follow(MemoryObjectStore())

    class Refusing(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> None:
            del max_bytes
            raise StoreError(key) from ClientError({"Error": {"Code": code}}, "GetObject")

    clients.has("RUNNING")
    with pytest.raises(Problem, match="goes on, but"):
        follow(Refusing())


@pytest.mark.parametrize("text", ["a" * 4088, "ö" * 2044])
def test_an_event_that_is_too_large_is_refused_before_the_call(clients: Clients, text: str) -> None:
    """Lambda counts bytes: 4,096 by its model, here with the eight around the text."""
    clients.runs(f'{{"a":"{text}"}}')
    REMOTE.start({"a": text})
    with pytest.raises(Problem, match="has 4097 bytes, and a MicroVM takes 4096 at most") as caught:
        REMOTE.start({"a": f"{text}a"})
    assert "into an object" in caught.value.todo


def test_an_event_that_is_no_text_is_refused_before_the_call() -> None:
    """JSON may escape half a character, which no payload can hold."""
    with pytest.raises(Problem, match=r"no text in UTF-8.*\\ud800"):
        REMOTE.start({"entryPoint": "s3://b/\ud800.py"})


def test_a_refusal_names_the_rights(clients: Clients) -> None:
    """Whoever starts a MicroVM also passes a role and network connectors."""
    clients["lambda-microvms"].add_client_error("run_microvm", "AccessDeniedException")
    with pytest.raises(Problem, match=IMAGE) as caught:
        REMOTE.start(EVENT)
    assert "iam:PassRole" in caught.value.todo


@pytest.mark.parametrize(
    ("fault", "todo"),
    [
        (ReadTimeoutError(endpoint_url="e"), "may run all the same"),
        (EndpointConnectionError(endpoint_url="e"), "check the network"),
    ],
)
def test_a_start_without_an_answer_leaves_the_question_open(
    monkeypatch: pytest.MonkeyPatch, clients: Clients, fault: Exception, todo: str
) -> None:
    """Unless the request has not left this machine."""

    def broken(**_: Any) -> None:
        raise fault

    monkeypatch.setattr(clients["lambda-microvms"].client, "run_microvm", broken)
    with pytest.raises(Problem) as caught:
        REMOTE.start(EVENT)
    assert todo in caught.value.todo


def test_an_older_boto3_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel takes such ones."""

    def unknown(*_: Any) -> None:
        raise UnknownServiceError(service_name="lambda-microvms", known_service_names=[])

    monkeypatch.setattr("soal.remote.microvm.aws_client", unknown)
    with pytest.raises(Problem, match="older than MicroVMs"):
        REMOTE.start(EVENT)


def test_who_stops_waiting_hears_how_to_look_again_and_how_to_end_it(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C the MicroVM goes on."""
    clients.has("RUNNING")

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("soal.remote.microvm.time.sleep", interrupted)
    with pytest.raises(Problem, match="goes on") as caught:
        follow(MemoryObjectStore())
    assert caught.value.exit_code == EXIT_TRY_AGAIN
    assert "soal runs show t" in caught.value.todo
    assert f"terminate-microvm --microvm-identifier {ID}" in caught.value.todo


def test_who_stops_the_start_hears_that_a_microvm_may_run(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda may have had the request."""

    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clients["lambda-microvms"].client, "run_microvm", interrupted)
    with pytest.raises(Problem, match="may run all the same") as caught:
        REMOTE.start(EVENT)
    assert caught.value.exit_code == EXIT_TRY_AGAIN
    assert "soal runs show t" in caught.value.todo
    assert "list-microvms" in caught.value.todo


def test_a_run_goes_on_in_another_microvm(clients: Clients) -> None:
    """With --until-done: the first has ended without a result, the next settles and finishes."""
    payload = json.dumps(EVENT, separators=(",", ":"))
    for _ in range(2):
        clients.runs(payload)
        clients.has("TERMINATED")
    stores = iter((MemoryObjectStore(), stored()))
    told: list[str] = []
    report = until_done(
        lambda event: REMOTE.followed(REMOTE.start(event), next(stores), lambda _: None, poll_s=0),
        EVENT,
        attempts_max=3,
        remark=told.append,
    )
    assert report.exit_code == EXIT_OK
    assert told == ["attempt 1 ended without a result; continuing"]


def outputs(**texts: str) -> dict[str, Any]:
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in texts.items()]
    return {"Stacks": [{"StackName": "Soal", "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": listed}]}


def test_the_outputs_of_the_stack_say_what_to_start(clients: Clients) -> None:
    """And where the results are."""
    answer = outputs(MicrovmLaunch=json.dumps(LAUNCH), CheckpointBucket="checkpoints")
    clients["cloudformation"].add_response("describe_stacks", answer, {"StackName": "Soal"})
    assert RemoteMicrovms.of_stack("Soal", None) == REMOTE
    assert REMOTE.log_group == "microvms"


def test_a_stack_without_microvms_says_what_makes_them(clients: Clients) -> None:
    """It was deployed without the context key."""
    clients["cloudformation"].add_response("describe_stacks", outputs(CheckpointBucket="checkpoints"))
    with pytest.raises(Problem, match="no output MicrovmLaunch") as caught:
        RemoteMicrovms.of_stack("Soal", None)
    assert "microvm_timeout_s" in caught.value.todo


def test_a_stack_that_is_not_there_is_a_problem(clients: Clients) -> None:
    """As CloudFormation says it."""
    clients["cloudformation"].add_client_error("describe_stacks", "ValidationError", "Stack Soal does not exist")
    with pytest.raises(Problem, match="does not exist"):
        RemoteMicrovms.of_stack("Soal", None)


def test_a_job_needs_a_place_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function, or a stack with MicroVMs."""
    monkeypatch.delenv("SOAL_FUNCTION", raising=False)
    done = CliRunner().invoke(app, ["invoke", "s3://b/x.py"])
    assert isinstance(done.exception, Problem)
    assert "--microvm STACK" in done.exception.todo
