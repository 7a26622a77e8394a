"""The driver reduces a stack trace of Java or of a Python worker to one line: the exception and its root cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.driver.message import in_one_line, message_of, shortened
from safewriter import UnsupportedError

FRAMES = "\tat org.example.A.b(A.java:1)\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n\t... 19 more\n"
TRACE = f"JVM stacktrace:\na.E: no\n{FRAMES}Caused by: b.F: full\n{FRAMES}"
PY4J = "An error occurred while calling o70.sql.\n: "
WORKER = """Traceback (most recent call last):
  File "/opt/worker.py", line 3386, in main
    process()
    ^^^^^^^^^
ValueError: no such day
"""


def of_spark(text: str) -> Exception:
    kind: type[Exception] = type(
        "AnalysisException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"}
    )
    return kind(text)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            (f"{PY4J}a.E: not connected: h", "Caused by: b.F: No driver"),
            "a.E: not connected: h; root cause: b.F: No driver",
        ),
        (
            ("Cannot make 'X':\n\nJVM stacktrace:\na.E: Cannot make 'X':", "Caused by: b.F: The value\n'2' is bad"),
            "Cannot make 'X'; root cause: b.F: The value '2' is bad",
        ),
        ((f"{PY4J}a.E: b.F: full", "Caused by: b.F: full", "Caused by: b.G: full"), "a.E: b.F: full"),
        ((f"{PY4J}a.E: one", "Caused by: b.F: two", "Caused by: a.E: one"), "a.E: one; root cause: b.F: two"),
        ((f"{PY4J}a.E: one", "Caused by: b.NullPointer"), "a.E: one; root cause: b.NullPointer"),
        ((f"{PY4J}a.E: one", "\tSuppressed: b.F: two", "\tCaused by: b.G: three"), "a.E: one"),
        (
            (f"{PY4J}a.E: lost: b.P: {WORKER}", "\nDriver stacktrace:", f"Caused by: b.P: {WORKER}"),
            "a.E: lost: b.P: ValueError: no such day",
        ),
    ],
    ids=["py4j", "pyspark", "nothing new", "the last new", "no message", "suppressed", "a Python worker's"],
)
def test_a_stack_trace_becomes_the_exception_and_its_root_cause(told: tuple[str, ...], line: str) -> None:
    """The last cause with a new message is the root; frames and repetitions are dropped."""
    assert in_one_line("".join(f"{part}\n{FRAMES}" for part in told)) == line


@pytest.mark.parametrize("text", ["", "no such day", "two\nlines", "[PARSE] at\n== SQL ==\nSELEC a\n^^^\n"])
def test_any_other_text_stays_as_it_is(text: str) -> None:
    """The line structure may make it readable."""
    assert in_one_line(text) == text


def test_the_trace_of_a_python_worker_becomes_its_last_line() -> None:
    """PySpark shows it without any Java frame."""
    text = f"\n  An exception was thrown from the Python worker. Please see the stack trace below.\n{WORKER}\n"
    assert in_one_line(text) == (
        "An exception was thrown from the Python worker. Please see the stack trace below. ValueError: no such day"
    )


def test_the_root_cause_is_told_however_long_the_rest_is() -> None:
    """Each of the two is truncated separately."""
    line = in_one_line(f"a.E: {'xx ' * 50_000}\n{FRAMES}Caused by: b.F: {'yyy ' * 50_000}\n{FRAMES}")
    assert "…; root cause: b.F: yyy" in line
    assert len(line) < 3100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[A] no b. SQLSTATE: 42703;\n'Project ['b]\n+- Range\n", "[A] no b. SQLSTATE: 42703"),
        (
            "[A] no t.\nDo b. SQLSTATE: 42P01; line 1 pos 9;\n'Project ['b]\n",
            "[A] no t. Do b. SQLSTATE: 42P01; line 1 pos 9",
        ),
        (
            "\n[P] at 'x'. SQLSTATE: 42601 (line 1, pos 7)\n\n== SQL ==\nSELECT x y z\n-----^^^\n",
            "[P] at 'x'. SQLSTATE: 42601 (line 1, pos 7)",
        ),
        (f"[A] no. SQLSTATE: 22022\n== DataFrame ==\n\n{TRACE}", "[A] no. SQLSTATE: 22022; root cause: b.F: full"),
    ],
    ids=["a plan", "a place and a plan", "a statement", "a query before a trace"],
)
def test_the_query_behind_spark_s_error_is_left_out(text: str, told: str) -> None:
    """The log has it; the answer is one line."""
    assert message_of(of_spark(text)) == told


def raised_from(cause: Exception, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


def test_what_a_script_s_error_came_from_is_told_behind_it() -> None:
    """A script's own words often say only what it was about to do."""
    cause = raised_from(KeyError("day"), ValueError("no day"))
    assert message_of(raised_from(cause, RuntimeError("cannot load."))) == "cannot load; root cause: KeyError: 'day'"
    error = RuntimeError("cannot load.")
    error.__context__ = cause
    assert message_of(error) == "cannot load; while handling KeyError: 'day'"


def test_a_cause_that_adds_nothing_is_left_out() -> None:
    """The script has told it already, or it has no words."""
    assert message_of(raised_from(ValueError("no day"), RuntimeError("failed: no day"))) == "failed: no day"
    assert message_of(raised_from(ValueError(), RuntimeError("failed"))) == "failed"


def test_the_guard_s_own_errors_name_their_cause_themselves() -> None:
    """The end of the line is what to do."""
    assert message_of(raised_from(ValueError("no day"), UnsupportedError("do that"))) == "do that"


@given(
    st.lists(st.sampled_from(["\n", "\t", "\tat ", "Caused by: ", "a: b", ":", FRAMES, WORKER, "JVM stacktrace:\n"]))
)
def test_whatever_holds_a_frame_is_one_line(parts: list[str]) -> None:
    """This holds even if the text is not formatted as Java does."""
    assert len(in_one_line(f"{''.join(parts)}\n{FRAMES}").splitlines()) <= 1


def test_a_long_message_is_cut_before_a_word() -> None:
    """The handler masks secrets later, and would not recognise half a secret."""
    secret = "x" * 40
    for length in range(1440, 1500):
        line = in_one_line(f"a.E: {'w' * length} {secret}\n\tat a.B.c(B.java:1)\n")
        assert secret in line or "xx" not in line


@pytest.mark.parametrize(
    "cell",
    ["SQLSTATE: 22018\n", "SQLSTATE: 22018;\n== SQL ==\n", "Table schema:\n -- a: b (nullable = true)\nData schema:\n"],
)
def test_a_cell_hides_nothing_of_the_message_behind_it(cell: str) -> None:
    """Only the number at the message's end, and the name of Delta's error at its beginning, say what is left out."""
    told = message_of(of_spark(f"[CAST] The value '{cell}' is malformed. SQLSTATE: 22018\n== SQL ==\nSELECT x\n"))
    assert told == f"[CAST] The value '{' '.join(f'{cell}_'.split())[:-1]}' is malformed. SQLSTATE: 22018"


def test_delta_s_two_schemas_become_their_difference() -> None:
    """A real one of Delta's is in `tests/integration/handler/test_spark_messages.py`."""
    trees = (
        "Table schema:\nroot\n -- a: b: long (nullable = true)\n\n\nData schema:\nroot\n -- c: int (nullable = true)\n"
    )
    error = of_spark(f"[DELTA_METADATA_MISMATCH] A schema mismatch.\nDo that.\n\n{trees}\n\nIf ACLs are enabled")
    assert message_of(error) == (
        "[DELTA_METADATA_MISMATCH] A schema mismatch. Do that. Columns only in the data: c; only in the table: a: b"
    )


def tree(*columns: str) -> str:
    return "".join(f" |-- {name}: long (nullable = true)\n" for name in columns)


def mismatch(data: str) -> str:
    trees = f"Table schema:\nroot\n{tree('id')}\n\nData schema:\nroot\n{data}"
    return message_of(of_spark(f"[DELTA_METADATA_MISMATCH] no.\n\n{trees}"))


def test_the_difference_of_two_schemas_is_short_whatever_names_the_data_has() -> None:
    """A producer's object with one long name above thousands of others would fill the function's memory."""
    inner = "".join(f" |    |-- {number}: long (nullable = true)\n" for number in range(2000))
    told = mismatch(f" |-- {'n' * 50_000}: struct (nullable = true)\n{inner}")

    assert len(told) < 2000
    assert "Columns only in the data: a name of 50000 characters, a name of 50002 characters, " in told
    assert "and 1971 more; only in the table: id" in told


def test_a_name_or_type_of_a_column_is_told_whole_or_not_at_all() -> None:
    """The handler masks secrets later, and would not recognise half a secret."""
    named = mismatch(f"{tree('id', 'n' * 200, 'm' * 201)}")
    assert named.endswith(f"Columns only in the data: {'n' * 200}, a name of 201 characters")
    typed = mismatch(f" |-- id: {'t' * 300} (nullable = true)\n")
    assert typed.endswith("Columns of another type: id (long in the table, a name of 300 characters in the data)")


def test_a_message_of_any_length_keeps_its_beginning_and_its_last_cause() -> None:
    """What stands between them is not searched."""
    text = f"a.E: bad price {'x y ' * 1_000_000}\n{FRAMES}Caused by: b.F: full\n{FRAMES}"
    assert len(shortened(text)) < 140_000
    told = message_of(of_spark(text))
    assert told.startswith("a.E: bad price x y")
    assert told.endswith("; root cause: b.F: full")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part",
    [
        "SQLSTATE: 22018 ",
        "Table schema:\n",
        "Data schema:\n\n",
        "-- ",
        ": ",
        " (nullable = ",
        "Traceback (most recent call last):\n  ",
        "JVM stacktrace:\n",
        "\tat a\nCaused by: a: ",
        "An error occurred while calling ",
    ],
)
@pytest.mark.parametrize("head", ["", "[DELTA_METADATA_MISMATCH] no\nTable schema:\n|Data schema:\n -- "])
def test_no_text_makes_a_message_s_search_expensive(head: str, part: str) -> None:
    """It grows with the length of the text, not with its square (the test's own time limit decides)."""
    assert message_of(of_spark(head.replace("|", f" -- {part * 50_000}\n") + part * 100_000)) != "…"
