"""The fence of a dead attempt in a Delta log: an empty commit with its epoch, in a free slot, dated in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import StoreError
from safewriter.tables.delta.fence import fence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.table import UndecidableError
from tests.unit.safewriter.delta_log import File, creation, key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.record.document import Checkpoint


def fenced(world: World, document: Checkpoint) -> None:
    fence(DeltaHistory(world.lake, world.clock), document, world.checkpoints, world.clock)


def test_a_fence_is_an_empty_commit_with_the_dead_epoch() -> None:
    """It holds commitInfo first, our transaction action, and no file."""
    world = World()
    document = world.job().begin().document

    fenced(world, document)

    info, txn = world.log.read(2)
    assert info["commitInfo"]["operation"] == "SAFEWRITER FENCE"
    assert json.loads(info["commitInfo"]["userMetadata"]) == {
        "safewriter": {"key": world.key, "epoch": 1, "reverts": None}
    }
    assert (txn["txn"]["appId"], txn["txn"]["version"]) == (world.key, 1)


def test_a_second_fence_is_not_written() -> None:
    """A later settler finds the first one."""
    world = World()
    document = world.job().begin().document

    for _ in range(2):
        fenced(world, document)

    assert world.log.head == 2


def test_a_fence_that_no_claim_may_have_seen_is_written_again() -> None:
    """A claim looks at the last hundred versions; an older fence may stand before it, whatever a document says."""
    world = World()
    document = world.job().begin().document
    fenced(world, document)
    for _ in range(100):
        world.append_foreign()

    fenced(world, document)

    assert len(world.log.actions("txn")) == 2


def test_our_own_commit_needs_no_fence() -> None:
    """Delta refuses to rebase any transaction of the same application after it."""
    world = World()
    document = world.job().begin().land().document

    fenced(world, document)

    assert world.log.head == 2


def test_the_fence_of_an_earlier_epoch_is_not_enough() -> None:
    """Each epoch is fenced by its own number."""
    world = World()
    world.job().begin()
    world.settle()
    document = world.job().begin().document

    fenced(world, document)

    assert [txn["version"] for txn in world.log.actions("txn")] == [1, 2]


def test_two_fences_of_one_moment_differ() -> None:
    """Equal bodies would both be taken for the winner's."""
    bodies = []
    for _ in range(2):
        world = World()
        fenced(world, world.job().begin().document)
        bodies.append(world.lake.contents()[key_of(2)])

    assert bodies[0] != bodies[1]


def test_a_fence_that_finds_no_free_slot_gives_up() -> None:
    """Another writer is always faster; the loop still ends."""
    world = World()
    document = world.job().begin().document
    log = DeltaHistory(world.lake, world.clock)
    log.append = lambda version, actions: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match="no free slot for a fence"):
        fence(log, document, world.checkpoints, world.clock)


def test_a_fence_on_a_busy_table_goes_on_as_long_as_it_has_time() -> None:
    """It follows the other commits slot by slot, reads each once, and lists the log once."""
    world = World()
    document = world.job().begin().document
    network = Network()
    log = DeltaHistory(network.store(world.lake), world.clock)
    append, lost = log.append, iter(range(150))

    def contended(version: int, actions: list[dict[str, Any]]) -> bool:
        if next(lost, None) is not None:
            world.append_foreign()
        return append(version, actions)

    log.append = contended  # type: ignore[method-assign]
    fence(log, document, world.checkpoints, world.clock)

    assert world.log.actions("commitInfo", 152)[0]["operation"] == "SAFEWRITER FENCE"
    asked = [sent.verb for sent in network.sent]
    assert asked.count("list") == 1
    assert asked.count("get") <= 2 * 152


ENABLED = {"delta.enableInCommitTimestamps": "true"}


def in_commit(world: World, version: int) -> int | None:
    stamp = world.log.actions("commitInfo", version)[0].get("inCommitTimestamp")
    return None if stamp is None else int(stamp)


@pytest.mark.parametrize("ahead_ms", [-5_000, 0, 90_000])
def test_in_commit_timestamps_only_grow(ahead_ms: int) -> None:
    """A fence is dated after the last version, also where the last writer's clock is ahead of ours."""
    world = World(properties=ENABLED, features=("inCommitTimestamp",))
    stamp = world.now_ms + ahead_ms
    world.log.append(File("x"), inCommitTimestamp=stamp)
    document = world.job().begin().document

    fenced(world, document)

    found = in_commit(world, world.log.head)
    assert found is not None
    assert found > stamp
    assert found >= world.now_ms
    assert next(iter(world.log.read(world.log.head)[0]["commitInfo"])) == "inCommitTimestamp"


@pytest.mark.parametrize("appended", [True, False])
def test_a_fence_is_dated_after_what_switched_in_commit_timestamps_on(*, appended: bool) -> None:
    """The claim knew nothing of them, and the clock of the writer that switched them on is ahead of ours."""
    world = World()
    document = world.job().begin().document
    stamp = world.now_ms + 90_000
    info = {"inCommitTimestamp": stamp, "timestamp": 5, "operation": "SET TBLPROPERTIES"}
    world.log.commit([{"commitInfo": info}, creation(ENABLED)[1]])
    if appended:
        world.log.append(File("x"), inCommitTimestamp=stamp + 7)

    fenced(world, document)

    assert in_commit(world, world.log.head) == stamp + 1 + 7 * appended


def test_a_table_without_in_commit_timestamps_gets_none() -> None:
    """The field is only allowed where the table asks for it."""
    world = World()

    fenced(world, world.job().begin().document)

    assert in_commit(world, 2) is None


PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"]}


@pytest.mark.parametrize(
    ("protocol", "refused"),
    [
        ({**PROTOCOL, "writerFeatures": ["catalogManaged", "inCommitTimestamp"]}, "catalogManaged"),
        ({**PROTOCOL, "readerFeatures": [], "writerFeatures": ["somethingNew"]}, "somethingNew"),
        ({"minReaderVersion": 3, "minWriterVersion": 8}, "version 8 of the protocol"),
    ],
)
@pytest.mark.parametrize("since_the_claim", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_no_table_gets_a_fence_under_an_unknown_protocol(
    *, protocol: dict[str, Any], refused: str, since_the_claim: bool, told: bool
) -> None:
    """The table tells of its protocol, not a document, in the log or beside it; the verdict is unknown."""
    world = World()
    if not since_the_claim:
        world.log.commit([{"commitInfo": {"timestamp": 5}}, {"protocol": protocol}])
    world.job().begin()
    if since_the_claim:
        world.log.commit([{"commitInfo": {"timestamp": 5}}, {"protocol": protocol}])
    world.append_foreign()
    if told:
        world.log.tell()
    head = world.log.head

    with pytest.raises(UndecidableError, match=refused):
        fenced(world, world.false_document())

    assert world.log.head == head


def test_a_fence_takes_a_document_s_word_for_a_table_that_no_spark_has_written_for_long() -> None:
    """The newest ten versions are looked at."""
    world = World(features=("appendOnly",))
    for _ in range(11):
        world.append_foreign()
    network = Network()
    document = world.job().begin().document

    fence(DeltaHistory(network.store(world.lake), world.clock), document, world.checkpoints, world.clock)

    assert len(network.sent) <= 2 + 2 * 10 + 1
    assert world.log.actions("commitInfo")[-1]["operation"] == "SAFEWRITER FENCE"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"protocol": 1, "metadata": {}}', b'{"protocol": {}}', b"{" * 10_000])
def test_what_stands_beside_a_version_may_be_damaged(body: bytes) -> None:
    """The versions themselves then tell of the table."""
    world = World(features=("catalogManaged",))
    world.lake.put(f"_delta_log/{world.log.head:020}.crc", body)
    world.job().begin()

    with pytest.raises(UndecidableError, match="catalogManaged"):
        fenced(world, world.false_document())


@pytest.mark.parametrize("said", [{}, {"delta.enableInCommitTimestamps": "TRUE"}, ENABLED])
@pytest.mark.parametrize("stamped", [True, False])
def test_the_last_version_decides_on_in_commit_timestamps(*, stamped: bool, said: dict[str, str]) -> None:
    """Whatever the document says of the table: without one Delta reads the table's history no more."""
    world = World(properties=said)
    info = {"timestamp": 5, "operation": "WRITE", **({"inCommitTimestamp": 7} if stamped else {})}
    world.log.commit([{"commitInfo": info}])

    world.job().begin()
    fenced(world, world.false_document() if stamped else world.document)

    assert (in_commit(world, world.log.head) is not None) is stamped


@pytest.mark.parametrize("version", [None, "abc", 1e999])
def test_a_protocol_that_no_writer_of_delta_writes_ends_no_settler(version: object) -> None:
    """Its commit cannot be read; the versions before it tell of the table."""
    world = World()
    world.log.commit([{"commitInfo": {"timestamp": 5}}, {"protocol": {"minWriterVersion": version}}])
    document = world.job().begin().document

    fenced(world, document)

    assert world.log.actions("commitInfo")[-1]["operation"] == "SAFEWRITER FENCE"


def test_a_fence_behind_a_version_that_no_settler_can_hold_needs_its_first_line_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An initial load of many files; its timestamp stands in its first line."""
    monkeypatch.setattr("safewriter.tables.delta.history.HELD_MAX_BYTES", 10_000)
    world = World()
    info = {"commitInfo": {"inCommitTimestamp": 2**62, "timestamp": 5}}
    world.log.commit([info, {"add": {"path": "x" * 20_000}}])
    document = world.job().begin().document

    fenced(world, document)

    assert in_commit(world, world.log.head) == 2**62 + 1
