"""A local account runs the function's image below Lambda's emulator, under a name in the account's own registry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from scripts.account.image import image_of_account
from scripts.image.docker import Docker
from scripts.provision import account
from scripts.provision.place import ROOT
from soal.console.problem import Problem


def test_the_image_is_what_is_deployed_below_the_emulator_of_its_interface(tmp_path: Path) -> None:
    """Its own first words come behind the emulator, and a function's command behind them; the name is removed."""
    built: list[str] = []

    def read(*words: str, timeout_s: float = 0) -> str:
        built.append((Path(words[-1]) / "Dockerfile").read_text() if words[0] == "build" else " ".join(words))
        return ""

    (tmp_path / "rie").write_bytes(b"program")
    docker = MagicMock(spec=Docker)
    docker.has.return_value = True
    docker.entry.return_value = ("python3", "-m", "awslambdaric", "")
    docker.read.side_effect = read

    with image_of_account(docker, "soal", tmp_path / "rie", "x") as name:
        assert name.endswith(".amazonaws.com/soal:x")
    dockerfile, removed = built
    assert dockerfile.startswith("FROM soal\n")
    assert json.loads(dockerfile.splitlines()[-1].removeprefix("ENTRYPOINT ")) == [
        "/soal-rie", "python3", "-m", "awslambdaric",
    ]  # fmt: skip
    assert removed == f"image rm --force {name}"


def test_the_jars_of_a_derived_image_come_last_on_its_class_path(tmp_path: Path) -> None:
    """They are where the handler looks for them (`SOAL_HOME/extra`)."""
    found: list[str] = []

    def read(*words: str, **_: object) -> str:
        if words[0] == "build":
            found.extend(path.name for path in Path(words[-1], "extra").iterdir())
            assert "COPY extra /opt/soal/extra/\n" in Path(words[-1], "Dockerfile").read_text()
        return ""

    for name in ("rie", "glue.jar"):
        (tmp_path / name).write_bytes(b"file")
    docker = MagicMock(spec=Docker)
    docker.entry.return_value = ("python3", "")
    docker.read.side_effect = read

    with image_of_account(docker, "soal", tmp_path / "rie", "x", [tmp_path / "glue.jar"]):
        assert found == ["glue.jar"]


def test_the_jars_of_glue_are_in_the_list_of_the_variant_full() -> None:
    """Each by one name, as the guide of the image has them."""
    listed = (ROOT / "image" / "full" / "jars.sha256").read_text(encoding="utf-8").split()[1::2]
    guide = (ROOT / "docs" / "guides" / "image.md").read_text(encoding="utf-8")
    for name in account._GLUE:
        assert len([jar for jar in listed if re.match(rf"{name}-\d", jar)]) == 1
        assert f"{name}`" in guide


def test_an_image_that_is_not_there_is_named() -> None:
    """The error says how to build it."""
    docker = MagicMock(spec=Docker)
    docker.has.return_value = False

    with pytest.raises(Problem, match="no image soal") as raised, image_of_account(docker, "soal", Path("rie"), "x"):
        pass
    assert "soal image build" in raised.value.todo
