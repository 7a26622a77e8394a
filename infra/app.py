"""CDK context -> settings -> stack -> cloud assembly. `cdk` runs this (cdk.json); it makes no requests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import App

from infra.context import read_context
from infra.contradictions import ConfigError
from infra.quotas import beyond_quotas
from infra.stack import SoalStack

if TYPE_CHECKING:
    from collections.abc import Mapping


def new_app(*, context: Mapping[str, object] | None = None, outdir: str | None = None) -> App:
    """Create an app; without `outdir` it writes to the folder that the `cdk` command line names.

    It records neither stack traces, which would be JavaScript's, nor the tree, for which SoAL has no tools: this halves
    the time.
    """
    return App(analytics_reporting=False, context=context, outdir=outdir, stack_traces=False, tree_metadata=False)


def main(app: App | None = None) -> int:
    """Synthesise; return the exit code."""
    app = new_app() if app is None else app
    try:
        config = read_context(app.node.get_all_context())
    except ConfigError as error:
        sys.stderr.write(f"soal: {error}\n")
        return 2
    stack = SoalStack(app, config)
    template = Path(app.synth().directory, stack.template_file)
    beyond = next(beyond_quotas(json.loads(template.read_text(encoding="utf-8")), config), None)
    if beyond is not None:
        sys.stderr.write(f"soal: {beyond}\n")
    return 0 if beyond is None else 2


if __name__ == "__main__":
    sys.exit(main())
