"""The lab puts a file at each place that one of Spark's Python examples reads."""

from __future__ import annotations

import io
import re

import pytest
from pyarrow import parquet

from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.examples.data import put_files
from tests.lab.examples.listing import examples, folder

PLACE = re.compile(r"""["'`]((?:data/(?:mllib|streaming)|examples/src/main/resources)/[\w./-]*)["'`]""")
# Their example ends without Hive, before it reads it, or makes it itself.
ABSENT = ("examples/src/main/resources/kv1.txt", "examples/src/main/resources/users.avro")


@pytest.fixture(scope="module")
def keys() -> list[str]:
    with EmbeddedS3(buckets=("data",)) as s3:
        put_files(s3.observer(), "data", "somebody")
        pages = s3.observer().get_paginator("list_objects_v2").paginate(Bucket="data")
        body = s3.observer().get_object(Bucket="data", Key="user/somebody/examples/src/main/resources/users.parquet")
        users = parquet.read_table(io.BytesIO(body["Body"].read()))
        assert users.column_names == ["name", "favorite_color", "favorite_numbers"]
        return [row["Key"] for page in pages for row in page["Contents"]]


def test_each_place_that_an_example_names_has_a_file(keys: list[str]) -> None:
    """In the scripts and in their arguments; below the folder of the user, where relative paths lead."""
    texts = [(folder() / example.name).read_text() for example in examples()]
    named = {place for text in texts for place in PLACE.findall(text)}
    named |= {word.removeprefix("{data}/") for example in examples() for word in example.arguments if "/" in word}
    places = [place for place in sorted(named) if place not in ABSENT and not place.endswith(("train", "test"))]
    assert len(places) > 20
    assert [place for place in places if not any(key.startswith(f"user/somebody/{place}") for key in keys)] == []
