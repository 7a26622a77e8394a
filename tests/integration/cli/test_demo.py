"""`scripts/demo` really runs, with a durable function too: exit 0, and every claim in its JSON document is true."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from scripts.provision.place import ROOT


@pytest.mark.spark
@pytest.mark.emulator
@pytest.mark.slow
@pytest.mark.parametrize(
    ("table_format", "s3"),
    [
        ("delta", "moto"),
        pytest.param("iceberg", "moto", marks=pytest.mark.matrix),
        pytest.param("delta", "seaweedfs", marks=pytest.mark.matrix),
        pytest.param("iceberg", "seaweedfs", marks=pytest.mark.matrix),
    ],
)
def test_every_claim_of_the_demonstration_is_true(table_format: str, s3: str) -> None:
    """It exits with code 0; its claims, as JSON on stdout, cover all three acts, and are true."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "scripts.demonstration.demo", "--json", "--format", table_format, "--s3", s3],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    claims = {claim["text"]: claim["holds"] for claim in json.loads(done.stdout)}
    assert done.returncode == 0, done.stderr
    assert all(claims.values())
    for part in ("the job succeeded", "rolled back", "no version has one", "attempt 2", "once", "no process is left"):
        assert any(part in text for text in claims), part


@pytest.mark.spark
@pytest.mark.emulator
@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.timeout(500)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_job_of_several_timeouts_is_shown_as_one_execution(table_format: str) -> None:
    """The document has one answer, and each part once."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "scripts.demonstration.demo", "--json", "--durable", "--format", table_format],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    claims = {claim["text"]: claim["holds"] for claim in json.loads(done.stdout)}
    assert done.returncode == 0, done.stderr
    assert all(claims.values())
    for part in ("one execution", "attempts", "each part is in the table once", "no process is left"):
        assert any(part in text for text in claims), part
