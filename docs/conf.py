"""The documentation's site: `scripts/docs` builds it, every warning is an error."""

import sys
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.provision.npm import ensure_npm
from scripts.provision.place import ROOT, Place
from scripts.reference import filled

project = "SoAL"
author = "The SoAL authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
default_role = "code"  # docstrings put code between single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
smartquotes = False  # --option stays --option
html_theme = "furo"
html_title = "SoAL"
html_show_copyright = False
exclude_patterns = ["pictures"]
_MERMAID = ensure_npm(Place(ROOT), "diagrams", ROOT / "docs" / "diagrams") / "@mermaid-js" / "tiny" / "dist"
html_static_path = ["diagrams/draw.js", str(_MERMAID / "mermaid.tiny.js")]
html_js_files = [("draw.js", {"defer": "defer"})]
# Classes of others have no page here.
_FOREIGN = (
    r"pyspark|pyspark\..*|SparkSession(\.Builder)?|DataFrame.*|StreamingQuery|StorageLevel|Checkpoint|Literal|T|date"
    r"|datetime\.date|threading\.Event|Path"
)
_INNER = r"safewriter\.(record|coordination)\..*|safewriter\.backfill\.T"
_OF_SNAPSHOTS = (
    r"ValueSpec|KeyEncoding|Duplicates|AdapterFactory|MetricsCollector|(Output|Manifest)Options|RetryConfig"
    r"|Sharding(Spec|Strategy)|RoutingValue|Mapping\[str|BuildResult|OpenStore|Key|Manifest|Publisher|Rollback|Source|Target|Verification|HistoryEntry|Keeping|Cleanup|safewriter\.snapshots\..*|collections\.abc\..*"
)
nitpick_ignore_regex = [("py:.*", f"({_FOREIGN}|{_INNER}|{_OF_SNAPSHOTS})")]


class Mermaid(Directive):
    """A diagram. Code hosts draw it, and so does the site's own copy of the library: no page loads a foreign script."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", f'<pre class="mermaid">\n{escape(chr(10).join(self.content))}\n</pre>', format="html")]


def setup(app: Sphinx) -> None:
    """Add what Sphinx has no setting for."""
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", lambda _app, _page, source: source.__setitem__(0, filled(source[0])))
