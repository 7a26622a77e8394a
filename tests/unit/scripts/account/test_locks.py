"""What an account on this machine is made of: exactly what is locked, and nothing of it in the product."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
CDK = ROOT / "scripts" / "account" / "cdk"


def test_the_command_line_is_the_one_that_the_guide_names() -> None:
    """The journey shows what a reader of the guide gets."""
    version = json.loads((CDK / "package.json").read_text(encoding="utf-8"))["dependencies"]["aws-cdk"]

    assert f"npm install --global aws-cdk@{version}\n" in (ROOT / "docs/guides/deploying.md").read_text(
        encoding="utf-8"
    )


def test_the_emulator_is_in_no_environment_of_the_product() -> None:
    """It is locked with hashes in a file of its own."""
    locks = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "requirements").glob("*.txt")}
    having = [name for name, text in locks.items() if re.search(r"^ministack==", text, re.MULTILINE)]

    assert having == ["account.txt"]
    assert re.search(r"^ministack==\S+ \\\n    --hash=sha256:", locks["account.txt"], re.MULTILINE)
