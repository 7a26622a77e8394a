"""A job that takes turns by commands, a line each: a process (`python -m`), or an object on a thread.

It appends its actions to a file of events, which is also the table that it writes: `commit` is refused once the write
is settled.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from safewriter.coordination import JobCoordinator
from safewriter.coordination.acquiring import uptime_s
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.record import OpenWrite
from safewriter.errors import TurnBlockedError, TurnLostError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from safewriter.coordination.backend import Backend

__all__ = ["Event", "Events", "Player"]

_CHECKPOINTS: Final = "s3://writes"


@dataclass(frozen=True, slots=True)
class Event:
    """One action of a job. `at_s` is the machine's uptime, the same for all processes."""

    what: str
    job: str
    token: int = 0
    key: str = ""
    at_s: float = 0.0


class Events:
    """A file that several processes append to, a line in one write."""

    def __init__(self, path: Path | str) -> None:
        self._path = path

    def add(self, event: Event) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, json.dumps(asdict(event)).encode() + b"\n")
        finally:
            os.close(file)

    def all(self) -> list[Event]:
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - a path or its text
                return [Event(**json.loads(line)) for line in file]
        except FileNotFoundError:
            return []

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.all() if event.what in kinds]


class Player:
    """One job at one lock."""

    def __init__(self, configuration: Configuration, events: Events, backend: Backend | None = None) -> None:
        self._job, self._events = configuration.job, events
        self._coordinator = JobCoordinator(configuration, backend, settle=self._settle, decided=self._decided)

    def do(self, line: str) -> str:
        """Carry out a command, and return the answer."""
        verb, _, argument = line.partition(" ")
        try:
            return str(getattr(self, f"_do_{verb}")(argument))
        except TurnLostError:
            return "lost"
        except TurnBlockedError:
            return "blocked"

    def _do_ready(self, _: str) -> str:
        self._coordinator.backend.read(self._coordinator.configuration.lock)
        return "ready"

    def _do_lock(self, _: str) -> str:
        turn = self._coordinator.lock()
        self._add("begin")
        return f"locked {turn.token}"

    def _do_unlock(self, _: str) -> str:
        self._add("end")
        return "completed" if self._coordinator.unlock() else "lost"

    def _do_check(self, _: str) -> str:
        assert self._coordinator.held is not None
        self._coordinator.held.check()
        return "held"

    def _do_write(self, key: str) -> str:
        assert self._coordinator.held is not None
        self._coordinator.held.open_write(OpenWrite(_CHECKPOINTS, key, 1))
        return "opened"

    def _do_commit(self, key: str) -> str:
        if any(event.key == key for event in self._events.of("settle")):
            return "refused"
        self._add("commit", key)
        return "committed"

    def _do_turns(self, number: str) -> str:
        completed = 0
        for _ in range(int(number)):
            self._do_lock("")
            completed += self._do_unlock("") == "completed"
        return f"completed {completed}"

    def _settle(self, write: OpenWrite, _: object) -> None:
        self._add("settle", write.write_key)

    def _decided(self, writes: Iterable[OpenWrite]) -> list[OpenWrite]:
        committed = {event.key for event in self._events.of("commit")}
        return [write for write in writes if write.write_key in committed]

    def _add(self, what: str, key: str = "") -> None:
        turn = self._coordinator.held
        self._events.add(Event(what, self._job, 0 if turn is None else turn.token, key, uptime_s()))


def main(configuration: str, events: str, skew_s: str) -> None:
    """Run as a process: answer each line of stdin with its number and the result."""
    if float(skew_s):
        now, now_ns = time.time, time.time_ns
        time.time = lambda: now() + float(skew_s)
        time.time_ns = lambda: now_ns() + int(float(skew_s) * 1e9)
    player = Player(Configuration.from_mapping(json.loads(configuration)), Events(events))
    for number, line in enumerate(sys.stdin):
        sys.stdout.write(f"{number} {player.do(line.rstrip())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
