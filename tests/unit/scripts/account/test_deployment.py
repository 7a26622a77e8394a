"""The CDK deploys the stack into a local account without a question, and a failure ends with the CDK's last words."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scripts.account.deployment import Deployment
from scripts.provision.account import Programs
from soal.console.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

SHOW = "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ)], open(sys.argv[0] + '.seen', 'w'))"


def deployment(tmp_path: Path, script: str) -> Deployment:
    (tmp_path / "cdk").write_text(script)
    programs = Programs((), (sys.executable, str(tmp_path / "cdk")), tmp_path)
    return Deployment(programs, {"PATH": "/bin", "AWS_ENDPOINT_URL": "http://account"}, tmp_path)


@pytest.mark.slow
def test_the_cdk_is_told_account_context_and_where_its_files_belong(tmp_path: Path) -> None:
    """It asks nothing, and leaves nothing outside of the folder."""
    deployment(tmp_path, SHOW).deploy({"lake_bucket": "true"})
    words, variables = json.loads((tmp_path / "cdk.seen").read_text())

    assert words[:4] == ["deploy", "Soal", "-c", "lake_bucket=true"]
    assert words[words.index("--require-approval") + 1] == "never"
    assert words[words.index("--output") + 1] == str(tmp_path / "cdk.out")
    assert variables["CDK_HOME"].startswith(str(tmp_path))
    assert variables["AWS_ENDPOINT_URL"] == "http://account"


@pytest.mark.slow
def test_the_cdk_is_told_of_another_account_and_stack(tmp_path: Path) -> None:
    """As the account of a profile has them."""
    made = replace(deployment(tmp_path, SHOW), stack="soal-demo-1", account="210987654321", region="eu-west-1")
    made.destroy({"stack_name": "soal-demo-1"})
    words, variables = json.loads((tmp_path / "cdk.seen").read_text())

    assert words[:4] == ["destroy", "soal-demo-1", "-c", "stack_name=soal-demo-1"]
    assert (variables["CDK_DEFAULT_ACCOUNT"], variables["CDK_DEFAULT_REGION"]) == ("210987654321", "eu-west-1")


@pytest.mark.slow
def test_a_failed_deployment_ends_with_the_last_words_of_the_cdk(tmp_path: Path) -> None:
    """The reader sees the reason, and which command it was."""
    with pytest.raises(Problem, match=r"cdk destroy: exit 3\n  \| no such stack"):
        deployment(tmp_path, "print('no such stack'); raise SystemExit(3)").destroy({})
