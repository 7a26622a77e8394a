"""Converts a state of the model to real objects in a store, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import UnknownOutcomeError
from safewriter.identity import Attempt
from safewriter.record.document import AttemptRecord, Checkpoint
from safewriter.record.liveness import GRACE_MS
from safewriter.settle.recovery import Evidence
from safewriter.tables.delta.commit import FENCE as FENCED
from safewriter.tables.delta.commit import REVERT as REVERTED
from safewriter.tables.delta.commit import Commit, Signature
from tests.model.state import (
    CLOSED,
    FENCE,
    FOREIGN,
    LOOK,
    NOTE,
    OURS,
    REMOVES,
    RESTORE,
    REVERT,
    REWRITE,
    SCHEMA_NOTE,
    TRANSACTION,
    Claim,
    Doc,
    Entry,
)
from tests.unit.safewriter.delta_log import TABLE_ID, File, append_actions, body_of, creation, key_of
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.record.document import CommitPoint
    from safewriter.settle.recovery import Cause
    from tests.model.state import Settling, State

__all__ = ["Materialised"]

_NOTES = {
    NOTE: body_of([{"note": {"nonce": "n"}}]),
    SCHEMA_NOTE: body_of([*creation(), {"note": {"nonce": "n"}}]),
    CLOSED: b'{"closed":true}\n',
}
_SCRIPTS: Final = "of the script"
_MORE: Final[dict[str, list[dict[str, Any]]]] = {
    "": [],
    REMOVES: [{"remove": {"path": "gone.parquet", "dataChange": True, "size": 1, "deletionTimestamp": 1}}],
    TRANSACTION: [{"txn": {"appId": _SCRIPTS, "version": 1, "lastUpdated": 1}}],
}


class Materialised(World):
    """The stores as the code would leave them in a state of the model."""

    def __init__(self, state: State, commit_point: CommitPoint) -> None:
        super().__init__(commit_point, existing=False)
        self.claims = state.doc.claims if state.doc is not None else ()
        for slot, entry in enumerate(state.log):
            self.lake.create(key_of(slot), body_of(self._actions(state, slot, entry)))
        for claim in self.claims:
            if state.files[claim.attempt] in ("there", "stray"):
                self.lake.put(self._file(claim).key, b"parquet")
        for epoch, note in enumerate(state.notes, 1):
            if note:
                self.bucket.create(self.checkpoints.note_key(self.key, epoch), _NOTES[note])
        if state.doc is not None:
            self.bucket.create(f"checkpoints/{self.key}.json", self._document(state, state.doc).to_bytes())

    # -- from the model ----------------------------------------------------------------------------------------------

    def _actions(self, state: State, slot: int, entry: Entry) -> list[dict[str, Any]]:
        born = creation() if slot == 0 else []
        if entry.kind == FOREIGN:
            return [*append_actions((File(f"foreign-{slot}.parquet"),)), *born]
        if entry.kind == OURS:
            claim = self.claims[entry.epoch - 1]
            return [*append_actions((self._file(claim),), txn=(self.key, entry.epoch)), *born, *_MORE[entry.more]]
        if entry.kind == FENCE:
            info = {"operation": FENCED, "userMetadata": Signature(self.key, entry.epoch).to_text()}
            txn = {"appId": self.key, "version": entry.epoch, "lastUpdated": 1}
            return [{"commitInfo": info}, {"txn": txn}, *born]
        ours = self._file(self.claims[state.log[entry.slot].epoch - 1])
        if entry.kind in (LOOK, RESTORE):
            looked = {"operation": "MERGE", "isBlindAppend": False, "userMetadata": str(entry.slot)}
            restored = {"operation": "RESTORE"}
            return [{"commitInfo": looked}] if entry.kind == LOOK else [{"commitInfo": restored}, ours.add()]
        removal = {"remove": {"path": ours.path, "dataChange": True}}
        if entry.kind == REWRITE:
            return [{"commitInfo": {"operation": "OPTIMIZE"}}, removal, File(f"rewritten-{slot}.parquet").add()]
        signature = Signature(self.key, state.log[entry.slot].epoch, reverts=entry.slot)
        return [{"commitInfo": {"operation": REVERTED, "userMetadata": signature.to_text()}}, removal]

    def _document(self, state: State, doc: Doc) -> Checkpoint:
        return Checkpoint(
            run_key="run",
            write_key=self.key,
            fingerprint=self.write.fingerprint,
            table=str(self.write.table),
            format="delta",
            step=None,
            commit_point=self.commit_point,
            status=doc.status,
            epoch=doc.epoch,
            owner=self._nonce(doc.claims[-1]),
            attempts=tuple(self._record(state, doc, epoch) for epoch in range(1, doc.epoch + 1)),
        )

    def _record(self, state: State, doc: Doc, epoch: int) -> AttemptRecord:
        claim = doc.claims[epoch - 1]
        over = state.clocks[claim.attempt] == 2
        return AttemptRecord(
            epoch=epoch,
            nonce=self._nonce(claim),
            run_id="run-id",
            request_id=None,
            prefix=self._prefix(claim),
            deadline_ms=self.now_ms + (-GRACE_MS - 1000 if over else 600_000),
            started_ms=self.now_ms,
            version_before=claim.before,
            table_id=None if claim.before < 0 else TABLE_ID,
            commit_version=0 if doc.named and epoch == doc.epoch else None,
            cleaned=claim.cleaned,
        )

    @staticmethod
    def _nonce(claim: Claim) -> str:
        return f"{claim.attempt + 1:016x}"

    def _prefix(self, claim: Claim) -> str:
        return Attempt(self._nonce(claim)).file_prefix(self.key, 1 + self.claims.index(claim))

    def _file(self, claim: Claim) -> File:
        return File(f"{self._prefix(claim)}part-00000.parquet")

    # -- running the code ----------------------------------------------------------------------------------------------

    def settled(self, cause: Cause, settling: Settling) -> bool:
        """Let the code settle; return False if the outcome is unknown."""
        evidence = Evidence(
            settling.epoch or None,
            nothing_sent=settling.nothing_sent,
            requests_ended=settling.quiet >= 0,
            lost="a statement of the block was refused" if settling.lost else None,
        )
        try:
            self.recovery().settle(self.key, cause, evidence)
        except UnknownOutcomeError:
            return False
        return True

    # -- back to the model -------------------------------------------------------------------------------------------

    def entries(self) -> tuple[Entry, ...]:
        """Return the log as the model's entries."""
        return tuple(self._entry(version) for version in self.log.versions)

    def _entry(self, version: int) -> Entry:
        found = self.lake.get(key_of(version))
        assert found is not None
        commit = Commit.parse(version, found.body)
        if commit.signature is not None:
            reverts = commit.signature.reverts
            return Entry(FENCE, epoch=commit.transactions[self.key]) if reverts is None else Entry(REVERT, slot=reverts)
        if self.key in commit.transactions:
            epoch = commit.transactions[self.key]
            more = TRANSACTION if _SCRIPTS in commit.transactions else REMOVES if commit.removes else ""
            return Entry(OURS, self.claims[epoch - 1].attempt, epoch, more=more)
        if commit.removes:
            removed = commit.removes[0]
            return Entry(REWRITE, slot=next(entry for entry in range(version) if removed in _added(self, entry)))
        if commit.info["operation"] == "MERGE":
            return Entry(LOOK, slot=int(commit.info["userMetadata"]))
        brought = _added(self, version)
        slots = [entry for entry in range(version) if brought & _added(self, entry)]
        return Entry(RESTORE, slot=slots[0]) if slots else Entry(FOREIGN)

    def doc(self) -> tuple[str, int, bool, bool, tuple[bool, ...]]:
        """Return status, epoch, whether a commit is named, whether rows are missing, and each attempt's `cleaned`."""
        document = self.document
        return (
            document.status.value,
            document.epoch,
            document.attempt.commit_version is not None,
            document.incomplete is not None,
            tuple(attempt.cleaned for attempt in document.attempts),
        )

    def files(self) -> tuple[bool, ...]:
        """Return for each claim whether its file exists."""
        there = self.lake.contents()
        return tuple(self._file(claim).key in there for claim in self.claims)


def _added(world: World, version: int) -> set[str]:
    found = world.lake.get(key_of(version))
    assert found is not None
    actions = [json.loads(line) for line in found.body.splitlines()]
    return {action["add"]["path"] for action in actions if "add" in action}
