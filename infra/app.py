"""CDK context -> settings -> stack -> cloud assembly. `cdk` runs this (cdk.json); it asks nobody and builds nothing."""

from __future__ import annotations

import sys

from aws_cdk import App

from infra.config import Config, ConfigError
from infra.stack import SoalStack

__all__ = ["main"]


def main(app: App | None = None) -> int:
    """Synthesise into the directory that the `cdk` command line names; return the exit code."""
    app = App(analytics_reporting=False) if app is None else app
    try:
        config = Config.from_context(app.node.get_all_context())
    except ConfigError as error:
        sys.stderr.write(f"soal: {error}\n")
        return 2
    SoalStack(app, config)
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
