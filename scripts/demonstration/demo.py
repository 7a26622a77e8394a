"""`scripts/demo`: a guarded job succeeds, the next one reaches its deadline, its retry lands once. With `--durable` one
durable execution runs a job that is longer than three timeouts. With `--account` the stack runs in an account
on this machine, or with `--profile` in that of an AWS profile.

Without `--account` everything is real (the handler under Lambda's runtime interface emulator, Spark, SafeWriter, a REST
catalog for `--format iceberg`) except S3, which is moto, and the durable service, which AWS's emulation replaces. With
`--s3 seaweedfs` S3 and the catalog are SeaweedFS's. Each claim is checked against the table's files, and the table as
deltalake or pyiceberg reads it. A false claim means exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
from rich.text import Text

from handler.spark.archive import archive_of
from scripts.accommodations import ROWS
from scripts.demonstration import acts, long_job
from scripts.demonstration.account import playing
from scripts.demonstration.stage import Claims, Demo, open_format
from scripts.emulator.s3_backends import BACKENDS, opened_backend
from scripts.local.sample import put_sample
from soal.console.problem import EXIT_FAILED, EXIT_OK, Problem
from soal.console.screen import Screen
from soal.home import Home
from soal.local.names import BUCKETS, CHECKPOINTS
from soal.testing.s3 import EmbeddedS3


def main() -> int:
    """Play the three acts; return 0 if every claim was true."""
    options = _options()
    as_json = options.json
    console = Screen(stderr=as_json)
    claims = Claims(console)
    begin_s = time.monotonic()
    try:
        if options.profile:
            playing.play_on_profile(console, claims, options.profile, options.image, agreed=options.yes)
        elif options.account:
            playing.play(console, claims, options.image, options.record)
        else:
            with (
                opened_backend(options.s3) as backend,
                EmbeddedS3(buckets=BUCKETS, unlistable=(CHECKPOINTS,), backend=backend) as s3,
                open_format(options.format, s3, backend) as format_,
            ):
                stage = Demo(console, s3, Home.of(), claims, format_, checks_tokens=options.s3 != BACKENDS[0])
                _play(stage, durable=options.durable)
        claims.check("no process is left", holds=not psutil.Process().children(recursive=True))
    except Problem as problem:
        claims.check(f"the job could be run: {problem} (to do: {problem.todo})", holds=False)
    if as_json:
        json.dump([asdict(claim) for claim in claims.entries], sys.stdout, indent=2)
        sys.stdout.write("\n")
    true = sum(claim.holds for claim in claims.entries)
    console.print(f"\n{true} of {len(claims.entries)} claims are true. {time.monotonic() - begin_s:.0f} s.")
    return EXIT_OK if claims.all_hold else EXIT_FAILED


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the claims as JSON on stdout, the rest on stderr")
    parser.add_argument("--durable", action="store_true", help="a job of three timeouts as one durable execution")
    parser.add_argument("--format", choices=["delta", "iceberg"], default="delta", help="the table's format")
    parser.add_argument(
        "--s3", choices=BACKENDS, default=BACKENDS[0], help="the S3; seaweedfs has a catalog of its own"
    )
    parser.add_argument(
        "--account", action="store_true", help="deploy the stack into an account on this machine (needs Docker)"
    )
    parser.add_argument("--profile", metavar="NAME", help="with --account: the account of an AWS profile, which pays")
    parser.add_argument("--yes", action="store_true", help="with --profile: do not ask after the budget")
    parser.add_argument(
        "--image",
        help="with --account: an image that Docker has, with --profile: one of ECR; default: that of this tree, built",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="with --account: write the run as JSON to a file")
    options = parser.parse_args()
    if options.account and (options.durable or options.format != "delta" or options.s3 != BACKENDS[0]):
        parser.error("--account has one journey, on Delta: leave --durable, --format and --s3 out")
    if options.image and not options.account:
        parser.error("--image is the image of the account's function: add --account")
    if options.record and not options.account:
        parser.error("--record keeps the journey in an account: add --account")
    if options.profile and not options.account:
        parser.error("--profile is that of an account: add --account")
    if options.yes and not options.profile:
        parser.error("--yes agrees to the budget of an account that costs: add --account --profile NAME")
    if options.profile and options.record:
        parser.error("--record names the emulator's versions: leave it out with --account --profile")
    return options


def _play(demo: Demo, *, durable: bool) -> None:
    put_sample(demo.s3.observer())
    demo.console.print(Text(f"S3 at {demo.s3.endpoint}; {ROWS:,} rows"), soft_wrap=True)
    if not archive_of(demo.home.path).is_file():
        words = "without a class-data archive, so Spark starts slowly; scripts/setup trains one, or says why it cannot"
        demo.console.print(words, style="yellow")
    (long_job if durable else acts).play(demo, ROWS)


if __name__ == "__main__":
    sys.exit(main())
