"""An S3 on this machine with injected faults, for the local S3 of a clone and for tests of jobs."""

from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.exchange import Exchange, Reply, Request
from soal.testing.s3.rules import Delay, Kill, Match, Refuse, Rule

__all__ = [
    "Delay",
    "EmbeddedS3",
    "Exchange",
    "Kill",
    "Match",
    "Refuse",
    "Reply",
    "Request",
    "Rule",
]
