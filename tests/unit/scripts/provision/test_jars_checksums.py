"""Set-up's lists of checksums for jars are written, read, and compared with a folder file by file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from scripts.provision.jars import Difference, compare, read_sums, sha256_of, write_sums
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path

A = hashlib.sha256(b"a").hexdigest()
B = hashlib.sha256(b"b").hexdigest()


def test_a_written_list_is_read_back(tmp_path: Path) -> None:
    """The list of a folder has each of its files with its sum, in the order of their names."""
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "b.jar").write_bytes(b"b")
    (folder / "a.jar").write_bytes(b"a")
    path = tmp_path / "sums"

    assert write_sums(path, folder) == 2
    assert list(read_sums(path).items()) == [("a.jar", A), ("b.jar", B)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{A} a.jar", "is not"),
        (f"{A}  ../a.jar", "is not"),
        (f"{A[:-1]}  a.jar", "is not"),
        (f"{A.upper()}  a.jar", "is not"),
        ("", "is not"),
        (f"{A}  b.jar", "names b.jar again"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, text: str, why: str) -> None:
    """A malformed line, a path, or a duplicate name is an error with the line number."""
    path = tmp_path / "sums"
    path.write_text(f"{B}  b.jar\n{text}\n")

    with pytest.raises(Failure, match=f"line 2 {why}"):
        read_sums(path)


def test_every_kind_of_difference_is_told(tmp_path: Path) -> None:
    """Missing, changed and unlisted files are reported separately."""
    (tmp_path / "right").write_bytes(b"a")
    (tmp_path / "wrong").write_bytes(b"x")
    (tmp_path / "extra").write_bytes(b"a")

    found = compare(tmp_path, {"right": A, "wrong": A, "missing": A})

    assert found == Difference(missing=("missing",), wrong=("wrong",), extra=("extra",))
    assert found


def test_an_equal_folder_makes_no_difference(tmp_path: Path) -> None:
    """Nothing differs when names and contents are those of the list."""
    (tmp_path / "a").write_bytes(b"a")

    assert not compare(tmp_path, {"a": A})


def test_a_folder_that_is_not_there_misses_everything(tmp_path: Path) -> None:
    """A missing folder counts as empty, as before the first set-up."""
    assert compare(tmp_path / "none", {"a": A}) == Difference(missing=("a",))


def test_the_sum_is_that_of_the_content(tmp_path: Path) -> None:
    """The sum is SHA-256, as sha256sum prints it."""
    (tmp_path / "a").write_bytes(b"a")

    assert sha256_of(tmp_path / "a") == A
