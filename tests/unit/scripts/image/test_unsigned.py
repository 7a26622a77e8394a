"""The maker of the class-data archive copies signed jars without their signature, and removes outdated copies."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

from scripts.image.unsigned import copy_unsigned, is_signed

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\nName: A.class\r\nSHA-256-Digest: x\r\n\r\n"


def jar(path: Path, *, signed: bool) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST)
        archive.writestr("A.class", b"\xca\xfe")
        archive.writestr("META-INF/services/x.SF", "a service, no signature")
        if signed:
            archive.writestr("META-INF/DUMMY.SF", "x")
            archive.writestr("META-INF/DUMMY.DSA", "x")
    return path


def test_only_signed_jars_are_copied_and_without_their_signature(tmp_path: Path) -> None:
    """Classes and main attributes are copied, signature and digests are not; the original is unchanged."""
    signed, plain = jar(tmp_path / "signed.jar", signed=True), jar(tmp_path / "plain.jar", signed=False)
    before = signed.read_bytes()
    (copy,) = copy_unsigned([signed, plain], tmp_path / "copies")
    assert is_signed(signed)
    assert not is_signed(copy)
    assert signed.read_bytes() == before
    with zipfile.ZipFile(copy) as archive:
        assert archive.read("A.class") == b"\xca\xfe"
        assert archive.read("META-INF/MANIFEST.MF") == b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\n"
        assert sorted(archive.namelist()) == ["A.class", "META-INF/MANIFEST.MF", "META-INF/services/x.SF"]


def test_a_copy_whose_original_is_gone_is_removed(tmp_path: Path) -> None:
    """After an update of a jar, the copy of the old version is removed from the class path."""
    signed = jar(tmp_path / "signed.jar", signed=True)
    copy_unsigned([signed], tmp_path / "copies")
    copy_unsigned([signed.rename(tmp_path / "newer.jar")], tmp_path / "copies")
    assert [copy.name for copy in (tmp_path / "copies").iterdir()] == ["newer.jar"]


def test_a_copy_has_the_time_stamp_of_its_original(tmp_path: Path) -> None:
    """A copy has its original's time stamp, which Java compares: copying again changes nothing."""
    signed = jar(tmp_path / "signed.jar", signed=True)
    os.utime(signed, (1_000_000_000, 1_000_000_000))
    (copy,) = copy_unsigned([signed], tmp_path / "copies")
    assert copy.stat().st_mtime == 1_000_000_000
