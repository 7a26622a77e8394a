"""Try the guard's mutants: `scripts/mutants --help`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.mutants.campaign import SPARK_TESTS, TESTS, Campaign, modules
from tests.mutants.running import ROOT, load_libraries

_PROGRESS_S: Final = 10


def main() -> int:
    """Return 0 if each mutant is killed or excused, and each excuse matches a mutant."""
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", help="modules or folders (of Java: classes); default: all but Spark's side")
    parser.add_argument("--java", action="store_true", help="the log store, as tests/logstore/mutants.toml changes it")
    parser.add_argument("--spark", action="store_true", help="Spark's side of the guard, with the tests that need it")
    parser.add_argument("--tests", nargs="*", help="files or folders of tests; default: all of the guard's")
    parser.add_argument("--seconds", type=float, default=60, help="how long a mutant is tested; default: %(default)s")
    parser.add_argument(
        "--list",
        action="store_true",
        help="only list the mutants, each with the test that kills it, as the last run has found out",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes side by side")
    parser.add_argument("--folder", type=Path, default=ROOT / ".soal" / "mutants", help="where results are kept")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="mutants-") as folder:
        tempfile.tempdir = folder  # also of the children: what a mutant leaves behind is deleted with it
        return _run_java(options) if options.java else _run(options)


def _run_java(options: argparse.Namespace) -> int:
    from tests.logstore.mutants import campaign, mutants  # the guard's mutants do not need this import

    if options.list:
        for one in mutants(Path(), options.paths):
            _print(str(one))
        return 0
    return campaign(options.paths, jobs=options.jobs)


def _run(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # end the children, too
    tests = options.tests or (TESTS + SPARK_TESTS if options.spark else TESTS)
    files = modules(options.paths, spark=options.spark)
    campaign = Campaign(files, options.folder, beside_each_other=options.jobs, seconds=options.seconds, tests=tests)
    if options.list:
        for line in campaign.known():
            _print(line)
        return 0
    _say("importing what the tests need")
    load_libraries(tests)
    for file in campaign.watch():
        _say(f"looked what runs in {file}")
    outcomes: Counter[str] = Counter()
    every, begun, said = len(campaign.candidates), time.monotonic(), 0.0
    for result in campaign.run():
        outcomes[result.outcome] += 1
        if result.outcome == "survived":
            _print(
                f"SURVIVED {result.file}:{result.line}: {result.function}: {result.change} [{result.by or result.text}]"
            )
        if time.monotonic() - said > _PROGRESS_S:
            said = time.monotonic()
            _say(f"{outcomes.total()} of {every} after {said - begun:.0f} s")
    stale = campaign.stale_excuses()
    for excuse in stale:
        _print(f"STALE {excuse.file}: {excuse.function}: {excuse.change}: the excuse is for no mutant")
    _print(", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items())))
    _say(f"each with its test or reason: {campaign.results_file}")
    return 1 if outcomes["survived"] or stale else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command line


def _say(text: str) -> None:
    print(f"mutants: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a command line


if __name__ == "__main__":
    sys.exit(main())
