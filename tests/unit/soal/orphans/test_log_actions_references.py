"""`soal orphans` finds the keys to which Delta actions refer: encoded paths, deletion vectors, unknown protocols."""

from __future__ import annotations

import pytest

from safewriter.objects import Location
from soal.orphans.log_actions import UnreadableLogError, file_keys, is_known, protocol_obstacle

TABLE = Location("lake", "some/table")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("day=a%20b%252Fc/part-1.parquet", "day=a b%2Fc/part-1.parquet"),
        ("day=a b/part-1.parquet", "day=a b/part-1.parquet"),
        ("xY/part-1.parquet", "xY/part-1.parquet"),
        ("s3://lake/some/table/a%20b/part-1.parquet", "a b/part-1.parquet"),
        ("s3a://lake/some/table/part-1.parquet", "part-1.parquet"),
    ],
)
@pytest.mark.parametrize("kind", ["add", "remove", "cdc"])
def test_a_path_is_found_as_the_key_that_s3_has(kind: str, path: str, key: str) -> None:
    """A path gives the key in S3, percent-encoded or not, relative or absolute."""
    assert key in file_keys(kind, {"path": path}, TABLE)


def test_a_path_that_is_not_encoded_is_found_though_it_looks_encoded() -> None:
    """Both readings of a path are kept, since not every engine encodes."""
    assert {"a%20b.parquet", "a b.parquet"} == file_keys("add", {"path": "a%20b.parquet"}, TABLE)


@pytest.mark.parametrize(
    "path",
    ["s3://lake/some/other/x.parquet", "s3://other/some/table/x.parquet", "file:/tmp/x.parquet", "/x.parquet"],
)
def test_a_file_that_is_not_the_tables_own_is_refused(path: str) -> None:
    """A path outside the table is refused, also a shallow clone's."""
    with pytest.raises(UnreadableLogError, match="refers to"):
        file_keys("add", {"path": path}, TABLE)


@pytest.mark.parametrize(
    ("storage", "where", "key"),
    [
        # The example of Delta's own PROTOCOL.md.
        ("u", "ab^-aqEH.-t@S}K{vb[*k^", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        ("u", "^-aqEH.-t@S}K{vb[*k^", "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        ("p", "s3://lake/some/table/deletion_vector_1.bin", "deletion_vector_1.bin"),
    ],
)
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_a_deletion_vector_is_a_file_that_is_needed(kind: str, storage: str, where: str, key: str) -> None:
    """A deletion vector is a needed file, also that of a removed file."""
    action = {"path": "x.parquet", "deletionVector": {"storageType": storage, "pathOrInlineDv": where}}
    assert file_keys(kind, action, TABLE) == {"x.parquet", key}


def test_an_inline_deletion_vector_is_no_file() -> None:
    """An inline deletion vector, which is in the log, refers to no file."""
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    assert file_keys("add", {"path": "x", "deletionVector": vector}, TABLE) == {"x"}


@pytest.mark.parametrize(
    "vector",
    [
        {"storageType": "q", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"},
        {"storageType": "u", "pathOrInlineDv": "short"},
        {"storageType": "u", "pathOrInlineDv": "####################"},
        {"storageType": "p", "pathOrInlineDv": "s3://elsewhere/deletion_vector_1.bin"},
    ],
)
def test_a_deletion_vector_that_cannot_be_found_is_refused(vector: dict[str, str]) -> None:
    """A deletion vector of an unknown kind, without a UUID, or of another table is refused."""
    with pytest.raises(UnreadableLogError):
        file_keys("add", {"path": "x", "deletionVector": vector}, TABLE)


def test_other_actions_refer_to_no_file_and_unknown_ones_are_told_apart() -> None:
    """Other known actions refer to no file; unknown ones are recognised as unknown."""
    assert file_keys("txn", {"appId": "a"}, TABLE) == set()
    assert is_known("commitInfo")
    assert not is_known("clone")


@pytest.mark.parametrize(
    ("protocol", "obstacle"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 2}, None),
        ({"minReaderVersion": 2, "minWriterVersion": 5, "readerFeatures": None}, None),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}, None),
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "newer"),
        ({"minReaderVersion": 3, "minWriterVersion": 8}, "newer"),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"]}, "catalogManaged"),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["ofTomorrow"]}, "ofTomorrow"),
    ],
)
def test_a_table_of_an_unknown_protocol_is_refused(protocol: dict[str, object], obstacle: str | None) -> None:
    """Unknown reader and writer features and versions are refused."""
    found = protocol_obstacle(protocol)
    assert (found is None) if obstacle is None else (obstacle in str(found))
