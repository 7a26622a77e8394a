"""The rules of turns, each of which a search can switch off, and the faults."""

from __future__ import annotations

from enum import Enum

__all__ = ["Fault", "TurnRule"]


class TurnRule(Enum):
    """The rules of turns: each value is the rule's text; the comments name the code that implements it."""

    # -- the record, in transitions.py and the backends
    RECORD_CAS = "the record changes by compare-and-swap only"
    TOKEN_GROWS = "a new lease raises the token"
    UNSETTLED_KEPT = "a takeover keeps the unsettled writes of earlier ones"
    DEAD_WRITES_KEPT = "the open writes of a holder that lost the lock become unsettled"
    UNDECIDED_KEPT = "a release keeps the writes that have no verdict"
    COMPLETES_LATE = "a turn counts when it is given back, not when it is granted"
    # -- a waiter, in acquiring.py
    WHOLE_LEASE = "a waiter takes the lock over after a whole lease without a renewal"
    ANSWER_TO_REQUEST = "a waiter measures from the answer of one request to the sending of another"
    NONCE_READ_BACK = "a waiter knows its own lease by its nonce"
    CONFIRMED = "a waiter that finds its lease without an answer renews it first"
    GIVE_UP = "a waiter that is next and asks no more loses its place"
    SOFT_RING = "in a ring of soft edges the lowest ticket goes first"
    # -- a holder, in turn.py, coordinator.py and block/opening.py
    SETTLE_FIRST = "a holder settles what is unsettled before its own turn begins"
    NOTE_FIRST = "a write is noted in the record before its gate opens"
    NOTE_HELD = "a note fails if the record names another lease"
    HOLDER_STOPS = "a holder stops before its lease can have ended"
    SENT_NOT_ANSWERED = "a holder counts its lease from the sending of a renewal, not from its answer"
    EVERY_BEAT = "each change that prolongs the holder's lease is a sign of life to others"
    RELEASE_READ_BACK = "a release without an answer is read back"


class Fault(Enum):
    """The faults; a scenario allows a number of them. Any process may be slow at any time."""

    KILL = "a process is killed, a request of its own perhaps still in the air"
    LOST = "a request is applied and its answer lost"
    LATE = "a request is answered by an error, and lands later or never"
    UNKNOWN = "a commit has no answer when its turn is given back"
    FORCE = "an operator releases the lock"
