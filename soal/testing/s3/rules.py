"""Faults as data: rules that choose requests and what happens to them.

    Rule(Match(operations={"PutObject"}, key_class="delta_log/commit"), Refuse())

This rule does not apply the first commit, and answers 503. `nth` is the first matching request that a rule hits,
`times` the number of consecutive hits. If several rules hit a request, the first in the list acts.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from soal.testing.s3.exchange import ConnectionDropped, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class Match:
    """The requests of a rule. A field that is None or empty matches all. `key` is a regex, searched in the key."""

    operations: AbstractSet[str] = frozenset()
    bucket: str | None = None
    key: str | None = None
    key_class: str | None = None
    is_mutating: bool | None = None

    def __call__(self, request: Request) -> bool:
        return (
            (not self.operations or request.operation in self.operations)
            and (self.bucket is None or request.bucket == self.bucket)
            and (self.key is None or re.search(self.key, request.key) is not None)
            and (self.key_class is None or request.key_class == self.key_class)
            and (self.is_mutating is None or request.is_mutating == self.is_mutating)
        )


class Effect(Protocol):
    """The action on a hit request: return the reply, or a function that waits for it, or raise `ConnectionDropped`."""

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]: ...


@dataclass(frozen=True, slots=True)
class Delay:
    """Apply the request after a delay."""

    delay_ms: int

    def __call__(self, request: Request) -> Reply:
        request.body()
        threading.Event().wait(self.delay_ms / 1000)
        return request.apply()


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not apply the request; reply with an error."""

    status: int = 503

    def __call__(self, request: Request) -> Reply:
        request.body()
        return Reply.error(self.status, "refused by a rule")


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the client by `end`: before the request is applied, in the middle of its body, or after it was applied."""

    phase: Literal["before", "torn", "after"]
    end: Callable[[], None]

    def __call__(self, request: Request) -> Reply:
        if self.phase == "torn":
            request.read_half()
        elif self.phase == "after":
            request.apply()
        self.end()
        raise ConnectionDropped


@dataclass(slots=True)
class Rule:
    """Hits `times` matching requests, starting with the `nth` (None: all from the nth on)."""

    match: Match
    action: Effect
    nth: int = 1
    times: int | None = 1
    _seen: int = 0
    _hits: int = 0
    _fired: threading.Event = field(default_factory=threading.Event)

    @property
    def hits(self) -> int:
        """The number of requests that this rule has hit."""
        return self._hits

    def takes(self, request: Request) -> bool:
        """Count the request and return whether to hit it. The wire calls this once per request, under a lock."""
        if not self.match(request):
            return False
        self._seen += 1
        is_hit = self._seen >= self.nth and (self.times is None or self._hits < self.times)
        self._hits += is_hit
        return is_hit

    def act(self, request: Request) -> Reply:
        """Apply the rule's action to the request, and wake `fired`."""
        try:
            reply = self.action(request)
        finally:
            self._fired.set()
        return reply() if callable(reply) else reply

    def fired(self, *, timeout_s: float) -> bool:
        """Wait until the rule has acted once (or, if its action makes the client wait, until it holds the request).

        Returns False after `timeout_s`.
        """
        return self._fired.wait(timeout_s)
