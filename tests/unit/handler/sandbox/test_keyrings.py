"""The handler removes keys that a job left in the kernel's keyrings of user and session."""

from __future__ import annotations

import ctypes
import errno
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from handler.sandbox import keyrings
from handler.sandbox.keyrings import present, remove_all_but

USERS = -4
ADD_KEY = {"x86_64": 248, "aarch64": 217}


def add(name: bytes, keyring: int = USERS) -> int:
    """Add a key as a job can."""
    return int(ctypes.CDLL(None).syscall(ADD_KEY[platform.machine()], b"user", name, b"value", 5, keyring))


def test_a_key_that_came_since_is_removed_and_no_other() -> None:
    """A developer's own keys existed before the first job."""
    mine = add(b"soal-test-before")
    if mine < 0:
        pytest.skip("this kernel or container lets nobody have keys")
    try:
        before = present()
        assert (USERS, mine) in before
        left = add(b"soal-test-left")
        assert present() - before == {(USERS, left)}
        remove_all_but(before)
        assert present() == before
    finally:
        remove_all_but(present() - {(USERS, mine)})


IN_A_SESSION = """
import ctypes, platform
from handler.sandbox import keyrings
from tests.unit.handler.sandbox.test_keyrings import add
JOIN_SESSION_KEYRING = 1
print(keyrings._keyctl(JOIN_SESSION_KEYRING, 0) > 0)
before = keyrings.present()
print(add(b"soal-test-session", -3) > 0, len(keyrings.present() - before))
print(keyrings.remove_all_but(before), keyrings.present() == before)
"""


def test_a_key_in_the_keyring_of_the_session_is_removed() -> None:
    """A container has a session of its own, which its handler and all jobs share."""
    root = Path(__file__).parents[4]
    found = subprocess.run([sys.executable, "-c", IN_A_SESSION], cwd=root, capture_output=True, text=True, check=True)
    has_session, *lines = found.stdout.splitlines()
    if has_session == "False":
        pytest.skip("this kernel or container lets nobody have a session")
    assert lines == ["True 1", "0 True"]


def test_where_the_kernel_has_no_keyrings_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same holds on a machine with another system call number."""
    monkeypatch.setattr(platform, "machine", lambda: "other")
    assert present() == frozenset()


@pytest.mark.parametrize("owner_may", [True, False])
def test_a_keyring_that_hides_its_keys_is_opened_again_or_told(
    monkeypatch: pytest.MonkeyPatch,
    owner_may: bool,  # noqa: FBT001 - a case
) -> None:
    """A job may remove the rights on its keyring: an empty answer would not prove that there are no keys."""
    opened: list[int] = []

    def keyctl(operation: int, keyring: int, *_: int) -> int:
        if operation == keyrings._SETPERM and owner_may:
            opened.append(keyring)
        may = keyring in opened
        ctypes.set_errno(0 if may else errno.EACCES)
        return 0 if may else -1

    monkeypatch.setattr(keyrings, "_keyctl", keyctl)
    if owner_may:
        assert keyrings.present() == frozenset()
        assert opened == [-3, -4, -5]
    else:
        with pytest.raises(PermissionError, match="shows its keys to nobody"):
            keyrings.present()


def test_a_key_in_the_persistent_keyring_is_removed() -> None:
    """That keyring outlives all processes of the user."""
    ring = keyrings._persistent()
    if not ring:
        pytest.skip("this kernel or container has no persistent keyrings")
    before = present()
    left = add(b"soal-test-persistent", ring[0])
    assert (ring[0], left) in present() - before
    assert remove_all_but(before) == 0
    assert present() == before
