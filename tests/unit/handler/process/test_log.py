"""The handler passes on a job's output line by line: metrics, floods, the tail for the result, masked secrets."""

from __future__ import annotations

import io
import json
from itertools import count

import pytest

from handler.process.log import JobLog
from handler.redaction.effort import WITHHELD, Effort
from handler.redaction.known import KnownForms
from handler.redaction.redact import Redactor, redact


def pumped(data: bytes, *, logged_max: int = 10_000) -> tuple[JobLog, list[str], list[str]]:
    lines: list[str] = []
    metrics: list[str] = []
    output = JobLog(redact, log=lines.append, metric=metrics.append, logged_max=logged_max)
    output.pump(io.BufferedReader(io.BytesIO(data)))
    return output, lines, metrics


OWN = {"CloudWatchMetrics": [{"Namespace": "mine", "Dimensions": [["Table"]], "Metrics": [{"Name": "Rows"}]}]}
METRIC = json.dumps({"_aws": OWN, "Rows": 1})
"""A metric of the job's own."""
PASSED = json.dumps({"_aws": OWN, "Rows": 1, "source": "job"})


def test_lines_are_logged_and_remembered() -> None:
    """Empty lines are dropped, and carriage returns removed."""
    output, lines, _ = pumped(b"one\r\n\n  \ntwo")
    assert lines == ["one", "two"]
    assert output.tail() == ("one", "two")


def test_the_tail_is_the_end() -> None:
    """The last fifty lines are kept for the result, since errors are at the end of a log."""
    output, _, _ = pumped(b"".join(b"%d\n" % number for number in range(100)))
    assert output.tail() == tuple(str(number) for number in range(50, 100))


def test_java_frames_are_not_worth_a_place_in_the_tail() -> None:
    """They are still logged."""
    output, lines, _ = pumped(b"Caused by: x\n\tat org.a.B$.c(D.scala:1)\n\t\t... 17 more\nend\n")
    assert len(lines) == 4
    assert output.tail() == ("Caused by: x", "end")


def test_a_key_whose_beginning_has_left_the_tail_is_masked() -> None:
    """The tail alone does not show that its lines belong to a key."""
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEsecret\n" * 60 + b"-----END PRIVATE KEY-----\nend\n"
    output, lines, _ = pumped(key)
    assert "MIIEsecret" not in "".join((*lines, *output.tail()))
    assert output.tail()[-1] == "end"


def test_a_key_in_a_flood_is_masked() -> None:
    """This holds even after logging has stopped."""
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEsecret\n" * 60 + b"-----END PRIVATE KEY-----\nend\n"
    output, _, _ = pumped(b"x" * 200 + b"\n" + key, logged_max=100)
    assert "MIIEsecret" not in "".join(output.tail())
    assert output.tail()[-1] == "end"


def test_what_looks_like_a_metric_and_is_none_is_a_line() -> None:
    """A metric must be JSON with an object under `_aws`."""
    _, lines, metrics = pumped(f'{{"_aws": 1}}\nsay "_aws"\n{METRIC}\n'.encode())
    assert lines == ['{"_aws": 1}', 'say "_aws"']
    assert metrics == [PASSED]


def test_the_jvm_s_last_words_are_noticed() -> None:
    """They report a full heap, and are recognised even if the log is full and the line is not logged."""
    words = b"Terminating due to java.lang.OutOfMemoryError: Java heap space\n"
    assert pumped(words)[0].saw_out_of_memory
    assert pumped(b"x" * 100 + b"\n" + words, logged_max=50)[0].saw_out_of_memory
    assert not pumped(b"fine\n")[0].saw_out_of_memory


def test_after_too_much_lines_are_counted_only() -> None:
    """A line says so once."""
    output, lines, _ = pumped(b"0123456789\n" * 100, logged_max=100)
    assert output.lines_dropped == 90
    assert lines[-1].startswith("too much output")
    assert len(lines) == 11


def test_a_list_that_speaks_of_metrics_is_a_line() -> None:
    """It is JSON, but not an object."""
    assert pumped(b'["_aws"]\n')[1:] == (['["_aws"]'], [])


def test_a_metric_in_a_flood_is_kept() -> None:
    """This holds even after logging has stopped."""
    flood = b"x" * 100 + b"\n" + b"y\n" * 60_000 + METRIC.encode()
    assert pumped(flood, logged_max=50)[2] == [PASSED]


def test_a_nul_is_replaced() -> None:
    """Logs truncate a line there."""
    assert pumped(b"a\0b\n")[1] == ["a\N{REPLACEMENT CHARACTER}b"]


def test_a_line_without_an_end_is_not_kept_whole() -> None:
    """Its beginning is logged, and the next line is complete again."""
    lines = pumped(b"x" * 1_000_000 + b"\nend\n", logged_max=2_000_000)[1]
    assert max(map(len, lines)) < 400_000
    assert lines == [f"{lines[0][:41_666]}… (the line is longer)", "end"]


@pytest.mark.parametrize(("character", "size"), [("x", 240_000), ('"', 120_000), ("é", 120_000)])
def test_a_line_is_whole_if_an_event_of_cloudwatch_s_can_hold_it(character: str, size: int) -> None:
    """A log of JSON lines stays one; a longer line is cut, and says so."""
    line = character * size
    assert pumped(f"{line}\n".encode(), logged_max=2_000_000)[1] == [line]
    (cut,) = pumped(f"{line}{line}\n".encode(), logged_max=2_000_000)[1]
    assert cut.endswith(f"{character}… (the line is longer)")
    assert len(json.dumps(cut, ensure_ascii=False).encode()) < 262_144


SECRET = "".join(f"{number:x}-" for number in range(6_000))


def shown(data: bytes) -> str:
    lines: list[str] = []
    output = JobLog(Redactor((SECRET,)), log=lines.append, metric=lines.append, logged_max=10_000_000)
    output.pump(io.BytesIO(data))
    return "".join((*lines, *output.tail()))


@pytest.mark.parametrize("before", [0, 900, 1_990, 2_990, 8_100, 16_300, 24_500])
def test_a_known_secret_is_masked_before_its_line_is_cut(before: int) -> None:
    """Half of it would not be found; it is longer than the logged part of a line."""
    seen = shown(f"{'x' * before} {SECRET} end\n".encode())
    assert SECRET[:12] not in seen
    assert SECRET[-12:] not in seen


def test_a_known_secret_in_which_a_line_lost_its_end_is_withheld() -> None:
    """The masks before it have made room in the logged part."""
    assert "fed-fee" not in shown(f"{SECRET} ".encode() * 40)


def test_a_form_that_a_cut_has_divided_is_withheld() -> None:
    """39 of the 40 characters of a key have no form to recognise."""
    key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    line = ("password=" + "p" * 500 + " ") * 48
    assert key[:30] not in shown((line[: 24_576 - 39 - 1] + " " + key + "\n").encode())


def test_lines_that_cost_too_much_are_withheld() -> None:
    """Once the run has used up its time, lines are never shown unmasked; the log has a sentence instead."""
    lines: list[str] = []
    clock = count()
    effort = Effort(13, lambda: next(clock))
    output = JobLog(redact, log=lines.append, metric=lines.append, effort=effort)
    output.pump(io.BytesIO(b"one\ntwo\nthree\n" + METRIC.encode() + b"\n" + b"x" * 5_000))
    assert lines == ["one", "two", *[WITHHELD] * 3]
    assert output.lines_dropped == 3


def test_the_tail_has_little_time_of_its_own() -> None:
    """The answer waits for it, however much of the run's time for such searches is left."""
    lines: list[str] = []
    clock = count()
    output = JobLog(redact, log=lines.append, metric=lines.append, effort=Effort(1_000, lambda: next(clock)))
    output.pump(io.BytesIO(b"one\ntwo\n"))
    assert lines == ["one", "two"]
    assert output.tail() == (WITHHELD, WITHHELD)


@pytest.mark.parametrize("has_ended", [False, True])
def test_the_tail_is_searched_whatever_the_lines_have_taken(*, has_ended: bool) -> None:
    """The job's error is there: it is shown even if the lines have used up their time, or their search was ended."""
    lines: list[str] = []
    effort = Effort(1 if has_ended else 0, lambda: 0)
    output = JobLog(redact, log=lines.append, metric=lines.append, effort=effort)
    if has_ended:
        output.end_search()
    output.pump(io.BytesIO(b"password=hunter22x\nValueError: the price column is missing\n"))
    assert lines == [WITHHELD, WITHHELD]
    assert output.tail() == ("password=[redacted]", "ValueError: the price column is missing")


def test_the_tail_is_told_while_lines_still_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer waits for no pump: a line that comes meanwhile is not in it."""
    output, _, _ = pumped(b"one\ntwo\n")

    def masked(_: KnownForms, text: str, *__: object, **___: object) -> str:
        if text != "late":
            output.pump(io.BytesIO(b"late\n"))
        return text

    monkeypatch.setattr(KnownForms, "masked", masked)
    assert output.tail() == ("one", "two")


def test_a_line_that_takes_too_long_hides_no_other_one() -> None:
    """One that is made to be slow has a share of the run's time, and no more."""
    lines: list[str] = []
    clock = count()
    known = Redactor(tuple("a" * 260 + str(number) for number in range(75)))
    output = JobLog(known, log=lines.append, metric=lines.append, effort=Effort(20_000, lambda: next(clock)))
    output.pump(io.BytesIO(f"before\n{'a' * 250 + '…' * 20}\nafter\n".encode()))
    assert lines == ["before", WITHHELD, "after"]
    assert next(clock) < 3_000


def test_metrics_have_a_budget_of_bytes_of_their_own() -> None:
    """A flood of metrics costs as little as one of lines, and the lines continue."""
    output, lines, metrics = pumped((METRIC + "\n").encode() * 99 + b"line\n", logged_max=5 * len(PASSED))
    assert (len(metrics), output.lines_dropped, lines) == (5, 94, ["line"])


def test_the_beginning_of_a_key_in_data_hides_no_more_of_the_log() -> None:
    """The next line cannot belong to a key; nor can a key have more lines than the largest one."""
    _, lines, _ = pumped(b"row: -----BEGIN PRIVATE KEY-----\nan important line\nMIIB\n")
    assert lines[1:] == ["an important line", "MIIB"]
    _, lines, _ = pumped(b"-----BEGIN PRIVATE KEY-----\n" + b"A\n" * 500)
    assert lines.count("A") == 100


@pytest.mark.parametrize("namespace", ["SoAL", " soal ", "AWS/Lambda", 3, None])
def test_a_metric_in_a_namespace_that_is_not_the_job_s_is_a_line(namespace: object) -> None:
    """A writer of data could silence alarms with it; in the log's own JSON it is a text."""
    metrics_of = [{"Namespace": name, "Metrics": [{"Name": "SweepStarted"}]} for name in ("mine", namespace)]
    metric = {"_aws": {"CloudWatchMetrics": metrics_of}, "SweepStarted": 1}
    _, lines, metrics = pumped(json.dumps(metric).encode())
    assert (len(lines), metrics) == (1, [])


def test_a_metric_that_names_two_namespaces_has_the_one_that_was_checked() -> None:
    """It is serialised anew: CloudWatch cannot choose the other one of two equal names."""
    metric = METRIC.replace('"Namespace"', '"Namespace": "SoAL", "Namespace"')
    assert pumped(metric.encode())[2] == [PASSED]


def test_a_metric_without_text_beyond_unicode_ends_no_log() -> None:
    """UTF-8 cannot encode a lone surrogate."""
    (written,) = pumped(METRIC[:-1].encode() + b', "a": "\\ud800"}')[2]
    assert '"a": "\\ud800"' in written


VERDICT = {"level": "WARNING", "message": "rolled_back: no commit", "run_key": "nightly", "status": "rolled_back"}
REPORT = {"type": "platform.report", "record": {"requestId": "r", "status": "timeout"}}


@pytest.mark.parametrize("claims", [VERDICT, REPORT, {**VERDICT, "source": ""}, {**VERDICT, "source": "handler"}])
@pytest.mark.parametrize(
    "aws",
    [
        {},
        {"CloudWatchMetrics": []},
        {"CloudWatchMetrics": [{"Namespace": "mine"}]},
        {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": []}]},
        {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": [{"Name": "absent"}]}]},
        {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": [{"Name": ["Rows"]}, 1]}]},
        {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": [{"Name": "Rows"}, {"Name": "source"}]}]},
        {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": [{"Name": "Rows"}], "Dimensions": [["source"]]}]},
        {"CloudWatchMetrics": [1]},
        OWN,
    ],
)
def test_what_a_job_prints_is_the_job_s_whatever_it_looks_like(aws: object, claims: dict[str, object]) -> None:
    """A row of its data could otherwise pass for a verdict, or for a timeout that Lambda reports."""
    _, lines, metrics = pumped(json.dumps({**claims, "_aws": aws, "Rows": 1}).encode())
    if aws == OWN:
        assert [json.loads(metric)["source"] for metric in metrics] == ["job"]
    else:
        assert (len(lines), metrics) == (1, [])


def test_a_metric_that_is_nested_deeply_is_a_line() -> None:
    """Code that walks a metric recurses once a level, and after an error there the output would no longer be read."""
    deep = METRIC[:-1] + ', "x": ' + "[" * 900 + "]" * 900 + "}"
    _, lines, metrics = pumped(f"{deep}\nafter\n".encode())
    assert (len(lines), lines[-1], metrics) == (2, "after", [])


@pytest.mark.parametrize("fault", [RecursionError, MemoryError, ValueError])
def test_a_line_whose_search_fails_is_withheld_and_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    """It is withheld from the log, the metrics and the tail, also in a flood that is not logged."""

    def masked(_: KnownForms, text: str, *__: object, **___: object) -> str:
        if "odd" in text:
            raise fault
        return text

    monkeypatch.setattr(KnownForms, "masked", masked)
    lines: list[str] = []
    metrics: list[str] = []
    output = JobLog(redact, log=lines.append, metric=metrics.append, logged_max=300)
    output.pump(io.BytesIO(b"odd\n" + METRIC.replace("mine", "odd").encode() + b"\nafter\n"))
    assert (lines, metrics, output.lines_dropped) == ([WITHHELD, WITHHELD, "after"], [], 2)
    flood = b"f" * 400 + b"\n" + b"x" * 70_000 + b"\n" + b"odd" * 2_000 + b"\nend\n"
    output.pump(io.BytesIO(flood))
    assert output.tail()[-2:] == (WITHHELD, "end")


def test_half_of_a_known_value_where_a_line_is_cut_is_masked() -> None:
    """A line beyond 262,144 bytes is cut without a mark; a long secret in it makes it short enough to be shown."""
    secret = "kT9xWq2LmZ7pRv4BnC8sYd3F"
    lines: list[str] = []
    beginning = f"password={'A' * 120_000} "
    line = beginning + "y" * (5 * 65_536 - len(beginning) - 18) + secret + " the rest" * 100
    output = JobLog(Redactor().knowing_secrets([secret]), log=lines.append, metric=lines.append)
    output.pump(io.BytesIO(line.encode()))
    assert secret[:4] not in lines[0]
    assert lines[0].endswith("y[redacted]… (the line is longer)")
