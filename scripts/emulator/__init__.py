"""AWS on this machine: S3 with injected faults, and Lambda's runtime interface emulator."""

from scripts.emulator.exchange import Exchange, Reply, Request
from scripts.emulator.rules import Delay, Kill, Match, Refuse, Rule
from scripts.emulator.s3 import EmbeddedS3

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
