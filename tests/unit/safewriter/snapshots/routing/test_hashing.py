"""A snapshot's key has the xxhash digest by which other programs route, for one key and for many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.routing.hashing import digest, digests, digests_of_integers

if TYPE_CHECKING:
    from safewriter.snapshots.format.encoding import Key

# What shardyfusion's router gives, with their remainders by 8 and by 3.
GOLDEN: dict[Key, tuple[int, int, int]] = {
    0: (14374147212387527897, 1, 2),
    1: (3439722301264460078, 6, 2),
    -1: (5841669975847748627, 3, 2),
    42: (15395265915043915720, 0, 1),
    255: (936843873771430885, 5, 1),
    2**31: (7714710879142532484, 4, 0),
    2**32: (17197929579947543131, 3, 1),
    2**63 - 1: (11687913294787043142, 6, 0),
    -(2**63): (9407778237848358495, 7, 0),
    "": (3244421341483603138, 2, 1),
    b"": (3244421341483603138, 2, 1),
    "a": (16629034431890738719, 7, 1),
    "hello": (10760762337991515389, 5, 2),
    b"hello": (10760762337991515389, 5, 2),
    "0": (1838281907459330133, 5, 0),
    "café": (5513492080776525439, 7, 1),
    b"\x00": (14144645293874801883, 3, 0),
    b"\xff\x00": (794437103675513319, 7, 0),
}


@pytest.mark.parametrize("key", GOLDEN)
def test_a_key_has_the_digest_that_others_route_by(key: Key) -> None:
    """This holds for one key, and for many keys at once."""
    wanted, by_8, by_3 = GOLDEN[key]
    assert (digest(key), digest(key) % 8, digest(key) % 3) == (wanted, by_8, by_3)
    many = digests_of_integers(np.array([key], np.int64)) if isinstance(key, int) else digests([key])
    assert many.tolist() == [wanted]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_many_integers_are_hashed_as_each_of_them(keys: list[int]) -> None:
    """The implementation of XXH3 in NumPy agrees with xxhash."""
    found = digests_of_integers(np.array(keys, np.int64)).tolist()
    assert found == [xxhash.xxh3_64_intdigest(key.to_bytes(8, "little", signed=True)) for key in keys]


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, 1.5, None])
def test_what_cannot_be_hashed_is_no_key(key: Key) -> None:
    """Integers are hashed as 64 bits with a sign."""
    with pytest.raises(KeyRangeError):
        digest(key)
