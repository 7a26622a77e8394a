"""The CDK app synthesises the stack without Node, Docker or account, and reports a bad value in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.cloud import Synthesised


def test_synthesis_needs_no_node_docker_or_account(plain: Synthesised) -> None:
    """`python -m infra.app` has written the assembly with an empty PATH, no settings and no look-ups."""
    assert plain.of_type("Lambda::Function").keys() != set()
    assert {path.name for path in plain.path.parent.iterdir()} >= {"manifest.json", "Soal.assets.json"}
    assert '"missing"' not in (plain.path.parent / "manifest.json").read_text()


def test_a_bad_value_ends_with_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The app reports a usage error (exit code 2) on stderr, without a stack trace or an assembly."""
    from infra.app import main, new_app

    code = main(new_app(context={"timeout_s": "1000"}, outdir=str(tmp_path)))

    assert code == 2
    assert capsys.readouterr().err.startswith("soal: context timeout_s=1000: ")
    assert list(tmp_path.glob("*.template.json")) == []


def test_a_stack_without_data_is_warned_about(tmp_path: Path) -> None:
    """The stack can be deployed, but no job could write a table: the assembly carries a warning."""
    from infra.app import new_app
    from infra.context import read_context
    from infra.stack import SoalStack
    from tests.support.cloud import IMAGE

    app = new_app(outdir=str(tmp_path))
    stack = SoalStack(app, read_context({"image_uri": IMAGE.replace("@sha256:", ":v")}))

    warnings = [str(entry.data) for entry in stack.node.metadata if entry.type == "aws:cdk:warning"]

    assert len(warnings) == 2
    assert "data=bucket/prefix or lake_bucket=true" in " ".join(warnings)
    assert "name a digest" in " ".join(warnings)
