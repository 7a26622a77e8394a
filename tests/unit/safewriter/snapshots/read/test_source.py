from __future__ import annotations

from safewriter.snapshots.read.source import Source
from tests.support.snapshots import PREFIX, Bucket


def test_sizes_are_those_of_the_objects_that_are_there() -> None:
    """In any bucket, by one listing of each; neighbours are left out."""
    bucket, listings = Bucket(), []
    listed = bucket.list

    def noted(prefix: str) -> object:
        listings.append(prefix)
        return listed(prefix)

    bucket.list = noted  # type: ignore[method-assign, assignment]
    for key in ("a/1/shard.db", "a/1/shard.db2", "a/2/other", "a/3/shard.db"):
        bucket.put(key, key.encode())
    wanted = [f"s3://memory/a/{number}/shard.db" for number in (1, 2, 3)]
    found = Source(PREFIX, bucket.opened).sizes(wanted)
    assert found == {wanted[0]: 12, wanted[2]: 12}
    assert listings == ["a/"]
    assert Source(PREFIX, bucket.opened).sizes([]) == {}
