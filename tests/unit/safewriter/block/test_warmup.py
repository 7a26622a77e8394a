"""The guard's warm-up imports boto3 and makes the S3 client that the first block will use."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from safewriter.block.warmup import warm_up
from safewriter.objects import Location

if TYPE_CHECKING:
    import pytest


def test_the_block_finds_the_client_that_the_warm_up_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block makes no second client."""
    from safewriter.objects import s3

    made: list[object] = []

    def client() -> object:
        made.append(object())
        return made[-1]

    monkeypatch.setattr(s3, "s3_client", lambda **_: client())
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints/of-the-warm-up")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-warm-up")
    warm_up()
    assert len(made) == 1
    s3.open_store(Location("another"))
    assert len(made) == 1


def test_without_a_bucket_there_is_nothing_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block raises the error about it, where the script can see it."""
    monkeypatch.delenv("SW_CHECKPOINT_BUCKET", raising=False)
    warm_up()


def test_importing_safewriter_leaves_boto3_to_the_warm_up() -> None:
    """It takes longer than all the rest, and Java does not wait for it."""
    code = "import safewriter, sys; sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
