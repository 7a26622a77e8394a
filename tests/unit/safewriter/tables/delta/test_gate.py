"""The Java gate's answers in Python: each refusal of a Delta statement becomes an error of its own type."""

from __future__ import annotations

import pytest

from safewriter.errors import (
    DeadlineError,
    StoreError,
    SupersededError,
    UnguardedSessionError,
    UnknownOutcomeError,
    UnsupportedError,
)
from safewriter.tables.delta.gate import GateState, GateStatus
from tests.support.java_errors import Java, converted, raised, refused, wrapped

NOTHING = GateState(GateStatus.NONE, passed=False, version=-1, refusal="thread: a neighbour's", stray="")

# What says it is tests/logstore and tests/model/test_gate_as_built.py.


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        ("operation: only appends", UnsupportedError),
        ("second: one commit", UnsupportedError),
        ("recreated: the table was dropped", UnsupportedError),
        ("fenced: settled by somebody else", SupersededError),
        ("late: the deadline is near", DeadlineError),
        ("gap: a version is gone", UnknownOutcomeError),
        ("denied: allow s3:PutObject", StoreError),
    ],
)
def test_a_refusal_of_the_gate_has_a_type_and_its_message(refusal: str, error: type[Exception]) -> None:
    """The code decides the type, and the message is unchanged."""
    code, _, text = refusal.partition(": ")
    found = NOTHING.error_of(raised(Java("org.apache.spark.SparkException", "failed", refused(code, text))))

    assert type(found) is error
    assert str(found) == refusal.partition(": ")[2]


@pytest.mark.parametrize("refusal", ["", "shut: the block has failed", "over: the block has ended"])
def test_no_refusal_is_no_error(refusal: str) -> None:
    """A gate that the guard itself has shut explains nothing."""
    code, _, text = refusal.partition(": ")
    assert NOTHING.error_of(raised(refused(code, text)) if code else RuntimeError("no space left")) is None


def test_a_refusal_behind_an_error_that_pyspark_converts_is_known() -> None:
    """PySpark keeps what Java has thrown."""
    found = NOTHING.error_of(converted(Java("a.QueryExecutionException", "failed", refused("late", "too near"))))

    assert (type(found), str(found)) == (DeadlineError, "too near")


@pytest.mark.parametrize(("how", "is_known"), [("from", True), ("while handling", False), ("from none", False)])
def test_a_refusal_keeps_its_type_if_the_script_wraps_it(how: str, *, is_known: bool) -> None:
    """Exit code and retries follow it."""
    found = NOTHING.error_of(wrapped(raised(refused("late", "too near")), how))

    assert type(found) is (DeadlineError if is_known else type(None))


def test_another_block_s_refusal_is_not_this_one_s() -> None:
    """A script that turns to a second block in the `except` of a first may fail there for a reason of its own."""
    first = DeadlineError("too near")
    first.__cause__ = raised(refused("late", "too near"))
    assert NOTHING.error_of(wrapped(first, "from")) is None


def test_a_ring_of_causes_has_an_end() -> None:
    """A script may set them."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert NOTHING.error_of(one) is None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad price: SafeWriter [late]: x"),
        raised(Java("org.apache.spark.SparkException", "Cannot cast 'SafeWriter [late]: x'", Java("a.Cast", None))),
        converted(Java("a.SparkRuntimeException", "SafeWriter [late]: x.parquet is not a Parquet file")),
    ],
)
def test_a_text_forges_no_refusal(error: Exception) -> None:
    """Cells, and names of objects, stand in the messages of errors: only the class of the gate's exception counts."""
    assert NOTHING.error_of(error) is None


def test_a_jvm_that_is_gone_refuses_nothing() -> None:
    """No class of an exception can be asked for."""

    class Gone:
        def __getattr__(self, _: str) -> object:
            raise ConnectionError("Java has ended")

    assert NOTHING.error_of(raised(Gone())) is None


@pytest.mark.parametrize(
    ("status", "answered"), [("none", True), ("landed", True), ("in flight", False), ("unknown", False)]
)
def test_a_gate_knows_whether_every_commit_was_answered(status: str, answered: object) -> None:
    """A commit that is in flight, or whose end is unknown, has no answer."""
    assert GateState(GateStatus(status), passed=True, version=3, refusal="", stray="").answered is answered


@pytest.mark.parametrize("code", ["session", "thread"])
def test_a_write_from_elsewhere_is_a_session_that_is_not_guarded(code: str) -> None:
    """Another thread or another session: the message names the right one."""
    found = NOTHING.error_of(raised(refused(code, "open a block there")))

    assert (type(found), str(found)) == (UnguardedSessionError, "open a block there")


def test_a_gate_of_which_no_more_is_known_has_put_no_note() -> None:
    """Nothing is looked for in the checkpoint bucket."""
    assert not NOTHING.noted
