"""`soal local status` shows process, endpoint and buckets of the local S3, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.local.inventory import BucketContent, local_view
from soal.console.output import Output
from soal.local.state import LocalS3

if TYPE_CHECKING:
    import pytest

STATE = LocalS3(pid=7, started=1.5, endpoint="http://127.0.0.1:1", buckets=("a",))


def test_a_program_reads_process_endpoint_and_buckets() -> None:
    """The JSON names process, endpoint and buckets, and a catalog only if there is one."""
    document = {
        "running": True,
        "pid": 7,
        "started": 1.5,
        "endpoint": "http://127.0.0.1:1",
        "buckets": [{"name": "a", "objects": 1, "bytes": 2}],
    }
    contents = [BucketContent("a", 1, 2)]
    assert local_view(None).document == {"running": False}
    assert local_view(STATE, contents).document == document
    with_catalog = STATE.model_copy(update={"catalog": "http://127.0.0.1:1/c"})
    assert local_view(with_catalog, contents).document == {**document, "catalog": "http://127.0.0.1:1/c"}


def test_a_person_reads_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The text has the same content as the JSON, with separators in large numbers."""
    state = STATE.model_copy(update={"catalog": "http://127.0.0.1:1/c"})
    Output(as_json=False).show(local_view(state, [BucketContent("a", 1, 22_248)]))
    text = capsys.readouterr().out
    assert all(part in text for part in ("http://127.0.0.1:1 (process 7)", "`local`: http://127.0.0.1:1/c", "22,248"))
