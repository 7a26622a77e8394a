"""Java's part of a guarded Delta block, modelled: Delta's statement, the gate, and their requests.

The gate decides by `tests/model/passing.py`, which is compared with `Gate.java` on generated histories.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.record import journal
from safewriter.record.document import CommitPoint
from safewriter.tables.delta.gate import GateState, GateStatus
from safewriter.tables.session import TableState
from tests.lab.campaign.schedules.hadoop import DeniedError, JavaError, Objects
from tests.lab.campaign.schedules.log import LAKE, ROOT, TABLE, added, body_of, creation, key_of, removed
from tests.lab.campaign.schedules.simulation import SECOND, simulation
from tests.model import passing
from tests.model.rules import Rule
from tests.model.state import Gate as Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.tables.session import MicroBatch, Opening
    from tests.lab.campaign.schedules.s3 import Client

__all__ = ["DeltaSession"]

_RULES: Final = frozenset(Rule)
_SKIPPED: Final = "this write was committed by an earlier attempt"
_LAST: Final = 100
_REBASES: Final = 20


class _RefusedError(JavaError):
    def __init__(self, code: str) -> None:
        super().__init__(f"SafeWriter [{code}]: refused")
        self.code = code


class DeltaSession:
    """The Spark side of a block on the table."""

    table = TABLE.replace("s3:", "s3a:")
    catalog: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}

    def __init__(self, client: Client) -> None:
        self._objects = Objects(client)
        self._gate = Seen()
        self._block = passing.Block(TABLE, "thread", "session", "", 0, -1)
        self._key, self._nonce, self._journal, self._note, self._latest_ms = "", "", "", "", 0
        self._before: TableState | None = None
        self._seen_up_to = -1
        self._tries = 0
        self._cancelled = self._running = False
        self._body: bytes | None = None
        self._bytes = 0
        self.has_begun = False

    # -- before --------------------------------------------------------------------------------------------------------

    def micro_batch(self) -> MicroBatch | None:
        return None

    def verify(self) -> None:
        pass

    def state(self) -> TableState:
        versions = self._objects.versions(-1)
        head, modified_ms = versions[-1] if versions else (-1, None)
        self._before = TableState(head, None if head < 0 else "id", (), {}, modified_ms=modified_ms)
        return self._before

    def named_since(self, write_key: str) -> int | None:
        """Look through the last versions as `LastVersions.java` does."""
        assert self._before is not None
        for version in range(max(0, self._before.version - _LAST + 1), self._before.version + 1):
            try:
                body = self._objects.get(LAKE, key_of(version))
            except JavaError as error:
                raise StoreError(str(error)) from error
            if body is None:
                raise StoreError(f"version {version} is gone")
            if write_key.encode() in body.partition(b'{"add"')[0].partition(b'{"remove"')[0]:
                return version
        return None

    def undo_obstacle(self, before: TableState) -> str | None:
        return None

    def begin(self, opening: Opening) -> None:
        document = opening.document
        attempt = document.attempt
        self._block = self._block._replace(
            prefix=attempt.prefix,
            epoch=document.epoch,
            claimed_at=attempt.version_before,
            undoable=document.commit_point is CommitPoint.SUCCESS,
        )
        self._key, self._nonce, self._journal = document.write_key, document.owner, opening.journal or ""
        self._note, self._latest_ms = opening.note.partition("://")[2], opening.latest_start_ms or 0
        self._seen_up_to = attempt.version_before
        self.has_begun = True

    def skip(self, *, write_key: str, nonce: str) -> None:
        self._key, self._nonce = write_key, nonce
        self._gate = self._gate._replace(shut=True)
        self.has_begun = True

    def keep_state(self) -> None:
        pass

    # -- the statement -------------------------------------------------------------------------------------------------

    def write(self, files: int, *, removes: str | None = None, work: int = 0) -> None:
        """Append a batch of some files, as a statement of Spark does that works for some time. Raises `JavaError`."""
        if self._cancelled:
            raise JavaError("the job was cancelled")
        self._running = True
        try:
            names = [f"{self._block.prefix}part-{number:05}.parquet" for number in range(files)]
            for name in names:
                simulation().sleep(work // files)
                self._check_running()
                self._objects.put(LAKE, f"{ROOT}/{name}", b"rows")
                self._check_running()
            self._commit(names, removes)
        finally:
            self._running = False

    def _check_running(self) -> None:
        if self._cancelled:
            raise JavaError("the job was cancelled")

    def _commit(self, names: list[str], removes: str | None) -> None:
        head = self._before.version if self._before is not None else -1
        versions = self._objects.versions(head)
        target = (versions[-1][0] if versions else head) + 1
        info = {
            "timestamp": simulation().wall_ms(),
            "operation": "WRITE" if removes is None else "MERGE",
            "operationParameters": {"mode": "Append"},
            "isBlindAppend": removes is None,
            "operationMetrics": {"numOutputRows": str(len(names))},
            "txnId": f"{simulation().actor.process.random.getrandbits(64):x}",
        }
        gone = () if removes is None else (removed(removes),)
        creates = creation() if target == 0 else ()
        actions = ({"commitInfo": info}, *creates, *map(added, names), *gone)
        for _ in range(_REBASES):
            self._check_running()
            if self._sent(target, actions):
                return
            if target == 0:
                raise JavaError("DELTA_METADATA_CHANGED: the table was created meanwhile")
            versions = self._objects.versions(target - 1)
            if removes is not None:  # Delta checks that nobody has removed that file
                raise JavaError("DELTA_CONCURRENT_DELETE_READ")
            target = versions[-1][0] + 1
        raise JavaError("DELTA_MAX_COMMIT_RETRIES_EXCEEDED")

    # -- the gate ------------------------------------------------------------------------------------------------------

    def _sent(self, target: int, actions: tuple[dict[str, Any], ...]) -> bool:
        """Send a commit through the gate; return False if another one was first."""
        info = actions[0]["commitInfo"]
        commit = passing.Commit(
            target,
            str(info["operation"]),
            frozenset({self._block.prefix}),
            changes_table=any("metaData" in action for action in actions),
            more=any("remove" in action for action in actions),
        )
        before = self._gate.passed
        self._pass(commit, actions)
        txn = {"txn": {"appId": self._key, "version": self._block.epoch, "lastUpdated": 1}}
        try:
            won = self._objects.create(LAKE, key_of(target), body := body_of(actions[0], txn, *actions[1:]))
        except DeniedError:
            self._gate = self._gate._replace(status="none", passed=before)
            raise self._refuse("denied") from None
        except JavaError:
            self._gate = passing.unknown(_RULES, self._gate)
            raise
        self._gate = passing.landed(self._gate, target) if won else passing.lost(self._gate)
        if won:
            self._read_back(target, body)
        else:
            self._look_at(target)
        return won

    def _pass(self, commit: passing.Commit, actions: tuple[dict[str, Any], ...]) -> None:
        self._check(commit)
        for version in range(self._seen_up_to + 1, commit.target):
            if not self._look_at(version):
                raise self._refuse("gap")
        if passing.needs_note(_RULES, self._gate, self._block):
            bucket, _, key = self._note.partition("/")
            made = [action for action in actions if "protocol" in action or "metaData" in action]
            try:
                if not self._objects.create(bucket, key, body_of(*made, {"note": {"nonce": self._nonce}})):
                    raise self._refuse("fenced")
            except DeniedError:
                raise JavaError("the note was denied") from None
            self._gate = self._gate._replace(noted=True)
        self._check(commit)
        if self._journal:
            journal.append(self._journal, "commit_passed", nonce=self._nonce)
        self._tries += 1
        self._gate = passing.sent(_RULES, self._gate, commit.target)

    def _check(self, commit: passing.Commit) -> None:
        late = 0 < self._latest_ms < simulation().wall_ms()
        if code := passing.check(_RULES, self._gate, self._block, commit, late=late):
            raise self._refuse(code)

    def _look_at(self, version: int) -> bool:
        body = self._objects.get(LAKE, key_of(version))
        if body is None:
            return False
        found = [json.loads(line) for line in body.splitlines()]
        epochs = [one["txn"]["version"] for one in found if "txn" in one and one["txn"]["appId"] == self._key]
        if passing.look(_RULES, self._block, [max(epochs, default=0)]):
            raise self._refuse("fenced")
        self._seen_up_to = version
        return True

    def _refuse(self, code: str) -> _RefusedError:
        self._gate = passing.refused(self._gate, code)
        if self._journal:
            journal.append(self._journal, "refused", nonce=self._nonce, reason=f"{code}: refused")
        return _RefusedError(code)

    def _read_back(self, version: int, body: bytes) -> None:
        try:
            self._body = self._objects.get(LAKE, key_of(version))
        except JavaError:
            self._body = None
        self._bytes = body.count(b'{"add"') * 4

    # -- inside and after ----------------------------------------------------------------------------------------------

    def was_skipped(self, error: Exception) -> bool:
        return isinstance(error, JavaError) and _SKIPPED in str(error)

    def check_skipped(self) -> None:
        pass

    def has_written(self) -> bool:
        return self._gate.passed

    def publish(self) -> None:
        pass

    def report(self) -> GateState:
        gate = self._gate
        landed = gate.status == "landed"
        refusal = f"{gate.refused}: refused" if gate.refused else ""
        return GateState(
            GateStatus(gate.status),
            gate.passed,
            gate.version,
            refusal,
            "",
            gate.noted,
            self._tries,
            self._body if landed else None,
            self._bytes if landed and self._body is not None else 0,
        )

    def shut(self, reason: str) -> None:
        self._gate = self._gate._replace(shut=True)

    def cancel(self) -> None:
        self._cancelled = True

    def wait_until_quiet(self, patience_s: float) -> bool:
        world = simulation()
        until = world.now + int(patience_s * SECOND)
        while self._running and world.now < until:
            world.sleep(SECOND // 4)
        return not self._running

    def may_have_left_files(self, report: GateState) -> bool:
        return report.status is not GateStatus.LANDED or report.tries > 1 or bool(report.refusal)

    def is_outlived(self) -> bool:
        return False

    def restore(self) -> None:
        pass
