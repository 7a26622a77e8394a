"""The arithmetic of the benchmark."""

from scripts.bench.guard import depth


def test_requests_that_overlap_count_once() -> None:
    """Three in a row and one beside them are a chain of three, however they are ordered."""
    assert depth([(20, 30), (0, 10), (5, 15), (10, 19)]) == 3


def test_no_request_is_no_chain() -> None:
    """Nothing in, nothing out."""
    assert depth([]) == 0
