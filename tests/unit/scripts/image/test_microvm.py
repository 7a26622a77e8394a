"""The zip file of a MicroVM image."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from handler.microvm.warm_up import warm_up_folder
from scripts.image.microvm import bundle

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/soal@sha256:" + "0" * 64


def test_it_builds_on_the_image_that_is_named() -> None:
    """Lambda passes no build arguments. Equal contents are equal bytes: an unchanged image is not built again."""
    body = bundle(IMAGE)
    assert body == bundle(IMAGE)
    text = zipfile.ZipFile(io.BytesIO(body)).read("Dockerfile").decode()
    assert re.findall(r"^(?:ARG|FROM) .*$", text, re.MULTILINE) == [f"ARG IMAGE={IMAGE}", "FROM ${IMAGE}"]
    with pytest.raises(ValueError, match="not the name"):
        bundle("soal\nRUN x")


def test_it_holds_what_the_warm_up_starts(tmp_path: Path) -> None:
    """The S3 runs from these files alone, beside its packages; each folder that the Dockerfile copies is there."""
    archive = zipfile.ZipFile(io.BytesIO(bundle(IMAGE)))
    archive.extractall(tmp_path / "warm-up")
    folder = warm_up_folder(tmp_path)
    assert folder == tmp_path / "warm-up"
    for source in re.findall(r"^COPY (\S+) ", (folder / "Dockerfile").read_text(), re.MULTILINE):
        assert (folder / source).exists()
    assert (folder / "image/archive/train.py").is_file()
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import soal.testing.s3; print(soal.testing.s3.__file__)"
    )
    command = [sys.executable, "-P", "-c", program]
    found = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=200).stdout
    assert found.startswith(str(folder))
