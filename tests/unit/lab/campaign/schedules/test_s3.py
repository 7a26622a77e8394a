"""The S3 of schedules behaves as the store that all other tests use, and its faults as they say."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.s3 import S3ObjectStore
from safewriter.objects.store import ListedObject, PreconditionFailed, StoredObject, StoreError
from tests.lab.campaign.schedules.s3 import S3, Client
from tests.lab.campaign.schedules.simulation import SECOND, Killed, Simulation
from tests.lab.campaign.schedules.surroundings import sleep
from tests.lab.campaign.schedules.wire import Fault, Hit
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects.store import ObjectStore

KEYS = ("a", "a/b", "a/c", "b", "ab")


@pytest.fixture
def world() -> Iterator[Simulation]:
    with Simulation(1) as world:
        yield world


@pytest.fixture
def s3() -> S3:
    return S3(lambda *_: None)


def store_on(s3: S3, prefix: str = "") -> S3ObjectStore:
    client: Any = Client(s3)
    return S3ObjectStore(client, "bucket", prefix, sleep=sleep)


def told(act: Callable[[], Any]) -> Any:
    """What a store answers, without its times and keys' prefixes."""
    try:
        answer = act()
    except PreconditionFailed:
        return "refused"
    if isinstance(answer, StoredObject):
        return answer.key, answer.body, answer.etag
    if isinstance(answer, list) and answer and isinstance(answer[0], ListedObject):
        return [(one.key, one.size) for one in answer]
    return answer


def answer_of(store: ObjectStore, *, verb: int, key: str, body: bytes, etag: str) -> Any:
    match verb:
        case 0:
            return store.get(key)
        case 1:
            return store.create(key, body)
        case 2:
            return store.replace(key, body, etag=etag)
        case 3:
            return store.put(key, body)
        case 4:
            return store.delete_all(KEYS[: len(body)])
        case _:
            return [*store.list(key[:1], start_after=key, at_once=len(body))]


def test_it_answers_as_the_store_of_other_tests(world: Simulation, s3: S3) -> None:
    """To a thousand requests that are drawn."""
    random = Random(1)  # noqa: S311 - the same requests each time
    s3.put("bucket", "some/prefix2/a", b"a neighbour")
    stores: tuple[ObjectStore, ...] = (MemoryObjectStore(), store_on(s3, "some/prefix"))
    etags = ["none"]
    for _ in range(1000):
        key, body, etag = random.choice(KEYS), random.randbytes(2), random.choice(etags)
        act = partial(answer_of, verb=random.randrange(6), key=key, body=body, etag=etag)
        one, other = (told(partial(act, store)) for store in stores)
        assert one == other
        if isinstance(one, str) and one != "refused":
            etags = [*etags[-5:], one]


@pytest.mark.parametrize(
    "fault", [Fault.LOST, Fault.BUSY, Fault.CONFLICT, Fault.GONE, Fault.LATE, Fault.SLOW], ids=lambda one: one.name
)
def test_a_conditional_write_survives_one_trouble(world: Simulation, s3: S3, fault: Fault) -> None:
    """The product's store sends it again, and knows its own object."""
    world.main.process.faults["document", 0] = Hit(fault, SECOND)
    store_on(s3).create("checkpoints/a", b"mine")
    assert s3.bucket("bucket")["checkpoints/a"].body == b"mine"


def test_a_denied_request_is_an_error_that_says_so(world: Simulation, s3: S3) -> None:
    """Nothing is sent again."""
    world.main.process.faults["read", 0] = Hit(Fault.DENIED)
    with pytest.raises(StoreError) as caught:
        store_on(s3).get("a")
    assert caught.value.denied
    assert s3.requests == 1


@pytest.mark.parametrize(
    ("fault", "applied"), [(Fault.KILL, None), (Fault.KILL_AFTER, 0), (Fault.KILL_LATE, 100), (Fault.FREEZE, 100)]
)
def test_a_request_of_a_dead_process_arrives_or_not(
    world: Simulation, s3: S3, fault: Fault, applied: int | None
) -> None:
    """Never, at once, or much later."""
    done: list[str] = []

    def work() -> None:
        store_on(s3).put("a", b"mine")
        done.append("answered")

    process = world.process("job", faults={("data", 0): Hit(fault, 100 * SECOND)})
    world.spawn(process, work)
    world.run(50 * SECOND)
    assert ("a" in s3.bucket("bucket")) is (applied == 0)
    world.run(200 * SECOND)
    assert ("a" in s3.bucket("bucket")) is (applied is not None)
    assert (done == ["answered"]) is (fault is Fault.FREEZE)


def test_a_dead_process_sends_nothing(world: Simulation, s3: S3) -> None:
    """Whatever it does while its threads unwind."""
    process = world.process("job")

    def work() -> None:
        world.kill(process)
        with pytest.raises(Killed):
            store_on(s3).put("a", b"mine")

    world.spawn(process, work)
    world.run()
    assert (s3.bucket("bucket"), world.errors) == ({}, [])
