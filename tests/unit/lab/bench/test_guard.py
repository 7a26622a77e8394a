"""The arithmetic of the benchmark."""

from tests.lab.bench.guard import depth


def test_requests_that_overlap_count_once() -> None:
    """Three in a row and one beside them are a chain of three, however they are ordered."""
    assert depth([(20, 30), (0, 10), (5, 15), (10, 19)]) == 3


def test_no_request_is_no_chain() -> None:
    """The longest chain of nothing is 0, and not an error."""
    assert depth([]) == 0
