from __future__ import annotations

import io

from handler.process.log import JobLog
from handler.redaction.redact import redact


def pumped(data: bytes, *, logged_max: int = 10_000) -> tuple[JobLog, list[str], list[str]]:
    lines: list[str] = []
    metrics: list[str] = []
    output = JobLog(redact, log=lines.append, metric=metrics.append, logged_max=logged_max)
    output.pump(io.BufferedReader(io.BytesIO(data)))
    return output, lines, metrics


def test_lines_are_logged_and_remembered() -> None:
    """Empty ones are not; carriage returns go."""
    output, lines, _ = pumped(b"one\r\n\n  \ntwo")
    assert lines == ["one", "two"]
    assert output.tail() == ("one", "two")


def test_the_tail_is_the_end() -> None:
    """The last fifty lines are kept for the result, since an error stands at the end of a log."""
    output, _, _ = pumped(b"".join(b"%d\n" % number for number in range(100)))
    assert output.tail() == tuple(str(number) for number in range(50, 100))


def test_java_frames_are_not_worth_a_place_in_the_tail() -> None:
    """They are logged all the same."""
    output, lines, _ = pumped(b"Caused by: x\n\tat org.a.B$.c(D.scala:1)\n\t\t... 17 more\nend\n")
    assert len(lines) == 4
    assert output.tail() == ("Caused by: x", "end")


def test_a_key_whose_beginning_has_left_the_tail_is_masked() -> None:
    """The tail alone would not show that its lines are a key's."""
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEsecret\n" * 60 + b"-----END PRIVATE KEY-----\nend\n"
    output, lines, _ = pumped(key)
    assert "MIIEsecret" not in "".join((*lines, *output.tail()))
    assert output.tail()[-1] == "end"


def test_a_key_in_a_flood_is_masked() -> None:
    """Also after logging has stopped."""
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEsecret\n" * 60 + b"-----END PRIVATE KEY-----\nend\n"
    output, _, _ = pumped(b"x" * 200 + b"\n" + key, logged_max=100)
    assert "MIIEsecret" not in "".join(output.tail())
    assert output.tail()[-1] == "end"


def test_what_looks_like_a_metric_and_is_none_is_a_line() -> None:
    """It must be JSON with an object under `_aws`."""
    _, lines, metrics = pumped(b'{"_aws": 1}\nsay "_aws"\n{"_aws": {}, "Rows": 1}\n')
    assert lines == ['{"_aws": 1}', 'say "_aws"']
    assert metrics == ['{"_aws": {}, "Rows": 1}']


def test_the_java_machine_s_last_words_are_noticed() -> None:
    """They tell of a full heap, also where the log has reached its bound and the line is not logged."""
    words = b"Terminating due to java.lang.OutOfMemoryError: Java heap space\n"
    assert pumped(words)[0].saw_out_of_memory
    assert pumped(b"x" * 100 + b"\n" + words, logged_max=50)[0].saw_out_of_memory
    assert not pumped(b"fine\n")[0].saw_out_of_memory


def test_after_too_much_lines_are_counted_only() -> None:
    """And that is said once."""
    output, lines, _ = pumped(b"0123456789\n" * 100, logged_max=100)
    assert output.lines_dropped == 90
    assert lines[-1].startswith("too much output")
    assert len(lines) == 11


def test_a_list_that_speaks_of_metrics_is_a_line() -> None:
    """It is JSON, but no object."""
    assert pumped(b'["_aws"]\n')[1:] == (['["_aws"]'], [])


def test_a_metric_in_a_flood_is_kept() -> None:
    """Also after logging has stopped."""
    flood = b"x" * 100 + b"\n" + b"y\n" * 60_000 + b'{"_aws": {}}\n'
    assert pumped(flood, logged_max=50)[2] == ['{"_aws": {}}']


def test_a_nul_is_replaced() -> None:
    """Logs cut a line there."""
    assert pumped(b"a\0b\n")[1] == ["a\N{REPLACEMENT CHARACTER}b"]


def test_a_line_without_an_end_is_not_kept_whole() -> None:
    """It is taken in its beginning, and the next one is a line again."""
    lines = pumped(b"x" * 1_000_000 + b"\nend\n", logged_max=2_000_000)[1]
    assert max(map(len, lines)) < 400_000
    assert lines[-1] == "end"
