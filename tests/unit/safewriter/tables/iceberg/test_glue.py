"""A fence moves an Iceberg table's pointer in AWS Glue, and overwrites neither other commits nor other fields."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from safewriter.objects.store import StoreError
from soal.testing.s3 import EmbeddedS3, Match, Reply, Rule
from tests.support.network_faults import LoseReply
from tests.support.page import PAGE
from tests.unit.safewriter.tables.iceberg.fenced import FENCE, GlueTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.testing.s3 import Request

pytestmark = pytest.mark.slow

KEPT = ("VersionId", "UpdateTime")


@pytest.fixture
def aws() -> Iterator[EmbeddedS3]:
    with EmbeddedS3() as server:
        yield server


@pytest.fixture
def table(aws: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[GlueTable]:
    made = GlueTable(aws.endpoint, monkeypatch)
    yield made
    made.drop()


@pytest.fixture
def glue(aws: EmbeddedS3, table: GlueTable) -> Any:
    return boto3.client("glue", endpoint_url=aws.endpoint, region_name=table.region)


def found(glue: Any) -> dict[str, Any]:
    answer: dict[str, Any] = glue.get_table(DatabaseName="db", Name="t")["Table"]
    return answer


def change(glue: Any, **fields: Any) -> None:
    """Change fields of the table, as another client."""
    taken = glue.meta.service_model.shape_for("TableInput").members
    kept = {key: value for key, value in found(glue).items() if key in taken}
    glue.update_table(DatabaseName="db", TableInput={**kept, **fields})


def client(pointer: Any) -> Any:
    """Return the Glue client of a pointer."""
    return pointer.opened().glue


def test_all_that_glue_tells_of_the_table_stays(table: GlueTable, glue: Any) -> None:
    """Only the two parameters of the pointer change; the fields that others have written stay."""
    own = {"Owner": "them", "Description": "theirs", "Retention": 3, "ViewOriginalText": "", "PartitionKeys": []}
    change(glue, **own, Parameters={**found(glue)["Parameters"], "theirs": "1"})
    before, location, held = found(glue), table.load().metadata_location, table.pointer().read()
    assert held is not None
    assert table.pointer().commit(held, table.fence())

    after, shown = found(glue), table.load().metadata_location
    assert shown != location
    pointer = {"metadata_location": shown, "previous_metadata_location": location}
    expected = {**before, "Parameters": {**before["Parameters"], **pointer}}
    assert {key: after[key] for key in after if key not in KEPT} == {
        key: expected[key] for key in expected if key not in KEPT
    }
    assert after["Parameters"]["theirs"] == "1"


def test_a_change_of_glue_alone_is_kept(table: GlueTable, glue: Any) -> None:
    """The metadata file is the one that was read, so the fence is not too late."""
    held, fence = table.pointer().read(), table.fence()
    change(glue, Description="theirs")
    assert held is not None
    assert table.pointer().commit(held, fence)
    assert found(glue)["Description"] == "theirs"


def test_a_commit_of_the_same_moment_is_not_overwritten(table: GlueTable) -> None:
    """Another client commits between the last read and the change: Glue refuses to change a version that is gone."""
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    events, others = client(pointer).meta.events, iter(["third"])

    def late(**_: Any) -> None:
        for name in others:
            table.add(name)

    events.register("provide-client-params.glue.UpdateTable", late)
    assert held is not None
    assert not pointer.commit(held, fence)
    assert len(table.load().metadata.snapshots) == 3
    assert FENCE not in table.load().metadata.refs


def test_a_commit_since_the_reading_is_not_overwritten(table: GlueTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence names the table's newest version then, so only the location shows that the fence is too late."""
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    put, others = table.lake.put, iter(["third"])

    def late(key: str, body: bytes, **more: Any) -> Any:
        answer = put(key, body, **more)  # the fence's metadata file, which precedes the change
        for name in others:
            table.add(name)
        return answer

    monkeypatch.setattr(table.lake, "put", late)
    assert held is not None
    assert not pointer.commit(held, fence)
    assert len(table.load().metadata.snapshots) == 3
    assert FENCE not in table.load().metadata.refs


def test_a_table_that_is_dropped_at_the_same_moment_is_not_made_again(table: GlueTable) -> None:
    """The fence comes too late."""
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    drop = functools.partial(table.catalog.drop_table, table.name.identifier)
    client(pointer).meta.events.register("provide-client-params.glue.UpdateTable", lambda **_: drop())
    assert held is not None
    assert not pointer.commit(held, fence)
    assert pointer.read() is None


def test_the_version_before_is_not_archived(table: GlueTable) -> None:
    """Glue keeps a bounded number of versions, and metadata files are Iceberg's archive."""
    sent: list[Any] = []
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    assert held is not None
    client(pointer).meta.events.register(
        "provide-client-params.glue.UpdateTable", lambda params, **_: sent.append(params["SkipArchive"])
    )
    assert pointer.commit(held, fence)
    assert sent == [True]


def test_a_table_of_another_format_is_no_table(table: GlueTable, glue: Any) -> None:
    """Somebody has dropped the table and made another one of its name."""
    change(glue, Parameters={**found(glue)["Parameters"], "table_type": "HUDI"})
    assert table.pointer().read() is None
    change(glue, Parameters={})
    assert table.pointer().read() is None


def test_a_lost_answer_that_boto3_asks_for_again_leaves_the_fence(aws: EmbeddedS3, table: GlueTable) -> None:
    """The repeated request meets the change of the first: too late, says Glue; the next read finds the fence."""
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    rule = aws.wire.add(Rule(Match(), LoseReply(None), nth=2))  # the first request is a read
    assert not table.pointer().commit(held, fence)
    assert rule.hits == 1
    again = table.pointer().read()
    assert again is not None
    assert FENCE in again.metadata["refs"]
    assert FENCE in table.load().metadata.refs


def test_a_page_of_a_proxy_is_no_change(aws: EmbeddedS3, table: GlueTable) -> None:
    """Status 200 alone does not say that Glue has moved the pointer."""
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    assert held is not None

    def page(request: Request) -> Reply:
        request.body()
        return Reply(200, (("Content-Type", "text/html"),), PAGE.encode())

    aws.wire.add(Rule(Match(), page, nth=2))  # the first request is a read
    with pytest.raises(StoreError, match="not from Glue"):
        pointer.commit(held, fence)
    assert FENCE not in table.load().metadata.refs


def test_an_error_of_glue_is_an_error_of_the_catalog(table: GlueTable) -> None:
    """It is unknown whether the change was made."""
    pointer = table.pointer()
    held, fence = pointer.read(), table.fence()
    assert held is not None

    def failing(**_: Any) -> None:
        raise TimeoutError("no answer")

    client(pointer).meta.events.register("before-call.glue.UpdateTable", failing)
    with pytest.raises(StoreError, match=r"fence lite\.db\.t in catalog 'lite'.*no answer"):
        pointer.commit(held, fence)
