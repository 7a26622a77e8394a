"""An S3 of its own process: `python -m soal.testing.s3 --bucket NAME --object BUCKET/KEY=FILE`.

It prints its endpoint, and serves until its standard input closes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> None:
    """Serve the buckets, with the objects in them."""
    parser = argparse.ArgumentParser(prog="python -m soal.testing.s3")
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--object", action="append", default=[], metavar="BUCKET/KEY=FILE")
    options = parser.parse_args(words)
    with EmbeddedS3(buckets=options.bucket) as s3:
        for text in options.object:
            name, _, path = text.partition("=")
            bucket, _, key = name.partition("/")
            s3.observer().put_object(Bucket=bucket, Key=key, Body=Path(path).read_bytes())
        print(s3.endpoint, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
