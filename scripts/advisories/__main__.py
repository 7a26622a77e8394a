"""`python -m scripts.advisories`, for scripts/audit: report known vulnerabilities of the jars.

Exit code 1: an advisory without an assessment, or a jar whose artifact is unknown; 75: the database cannot be reached,
and only this repository's list was checked.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from scripts.advisories.artifacts import UnknownJarError, inventory
from scripts.advisories.judge import judge, read_known
from scripts.advisories.osv import SERVICE, Osv, OsvError
from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.advisories.artifacts import Coordinates
    from scripts.advisories.judge import Advisory, Verdicts

_LIST: Final = "image/jars/advisories.toml"


def main(arguments: Sequence[str]) -> int:
    """Ask the database, compare its answers with the list, and print the findings."""
    parser = argparse.ArgumentParser(prog="scripts/audit")
    parser.add_argument("--service", default=SERVICE, help="another server that speaks OSV's interface")
    service = parser.parse_args(arguments).service
    known = read_known(ROOT / _LIST)
    try:
        stock = inventory(ROOT, ROOT / ".soal")
    except UnknownJarError as error:
        _say(f"failed: {error}")
        return 1
    coordinates = sorted({artifact.coordinates for artifact in stock.artifacts})
    scope = f"{len(coordinates)} artifacts in {stock.jars} jars"
    answers, failure = _ask(service, coordinates)
    list_of = known.advisories(coordinates)
    advisories = {key: _together(answers.get(key, ()), list_of.get(key, ())) for key in coordinates}
    verdicts = judge(stock.artifacts, advisories, known)
    for line in report(verdicts):
        _say(line)
    if failure is not None:
        for line in unreachable(failure, service, scope):
            _say(line)
    else:
        _say(f"{scope}: {service} was asked")
    if verdicts.unassessed:
        return 1
    return os.EX_TEMPFAIL if failure else 0


def _ask(
    service: str, coordinates: Sequence[Coordinates]
) -> tuple[dict[Coordinates, tuple[Advisory, ...]], OsvError | None]:
    try:
        with Osv(service) as osv:
            return osv.advisories(coordinates), None
    except OsvError as error:
        return {}, error


def _together(answers: Sequence[Advisory], rows: Sequence[Advisory]) -> tuple[Advisory, ...]:
    """Return the advisories of the database and of the list, without duplicates."""
    names = frozenset[str]().union(*(advisory.names for advisory in answers))
    return (*answers, *(advisory for advisory in rows if not advisory.names & names))


def report(verdicts: Verdicts) -> Iterator[str]:
    """Yield the findings. The ones that need work come last, where a reader sees them."""
    for assessment, findings in verdicts.assessed:
        yield f"{assessment.verdict}: {assessment.why}"
        for jar in sorted({finding.artifact.jar for finding in findings}):
            names = sorted({str(finding.advisory) for finding in findings if finding.artifact.jar == jar})
            yield f"  {jar}: {', '.join(names)}"
    for advisory in verdicts.idle:
        yield f"no jar is affected by {advisory} in {advisory.package} any more: remove its row from {_LIST}"
    for finding in verdicts.unassessed:
        advisory, artifact = finding.advisory, finding.artifact
        remedy = f"fixed in {advisory.fixed}" if advisory.fixed else "no fixed version is known"
        yield f"NOT ASSESSED: {artifact.jar}: {artifact.coordinates}: {advisory}: {remedy}. {advisory.summary}".rstrip()
    if verdicts.unassessed:
        yield f"  To do: take the fixed version, or write into {_LIST} what the advisory means for the image, and why"


def unreachable(error: OsvError, service: str, scope: str) -> Iterator[str]:
    """Yield which service did not answer, which checks ran without it, and what to do."""
    yield f"failed: the vulnerability database at {service} cannot be reached: {error}"
    yield f"  Checked without it: {scope} against {_LIST}, which is not complete"
    yield "  To do: run scripts/audit where that address can be reached; HTTPS_PROXY and REQUESTS_CA_BUNDLE are used"


def _say(line: str) -> None:
    print(f"audit: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
