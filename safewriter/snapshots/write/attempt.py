"""One attempt at a build, from its base to its publication and clean-up, guarded or not.

With a checkpoint bucket the attempt is a guarded block, like a write to a table: it has a deadline, a retry of its run
finds its publication, and the recovery removes the objects of a killed attempt. Without one, a failing build removes
its own objects, and `soal snapshot cleanup` those of a killed one.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.block.block import Block
from safewriter.coordination.current import turn_of_this_thread
from safewriter.entropy import unique_id
from safewriter.objects.s3 import open_store
from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import ManifestPublishError, PublishConflictError
from safewriter.snapshots.settle.leftovers import BuildId, published_key
from safewriter.snapshots.write.gate import gate
from safewriter.snapshots.write.publish import Publisher
from safewriter.snapshots.write.session import BuildScope, SnapshotSession
from safewriter.writer import SafeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.format.current import ManifestAt
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.write.gate import Gate

__all__ = ["BuildAttempt", "begin"]

_log = logging.getLogger(__name__)
_QUIET_S: Final = 10.0
"""How long to wait for losing or cancelled tasks to end, before deleting their objects."""


@dataclass(frozen=True, slots=True)
class BuildAttempt:
    """`publish` makes a manifest current and returns its URL. `current`: the manifest that was current when the attempt
    began; `publish` raises `PublishConflictError` unless it still is. `earlier`: the manifest that an earlier attempt
    of this run has published; then there is nothing to build. `gate`: the path of the tasks' gate, if they run here.
    """

    names: BuildId
    publish: Callable[[Manifest], str]
    current: ManifestAt | None = None
    earlier: str | None = None
    gate: str | None = None


@contextmanager
def begin(spark: SparkSession, config: WriteConfig, step: str | None) -> Iterator[BuildAttempt]:
    """Begin a build, and remove its leftovers at the end of the block. `step` distinguishes the builds of a run."""
    in_block = _guarded if os.environ.get("SW_CHECKPOINT_BUCKET") else _alone
    local_root = str(config.output.local_root or "")
    runs_here = str(spark.sparkContext.master).partition("[")[0] == "local"  # `local-cluster[…]` has other processes
    with (
        gate(local_root) if runs_here else nullcontext() as tasks_gate,
        in_block(spark, config, step, tasks_gate) as attempt,
    ):
        yield attempt if tasks_gate is None else replace(attempt, gate=str(tasks_gate.path))


@contextmanager
def _guarded(
    spark: SparkSession, config: WriteConfig, step: str | None, tasks_gate: Gate | None
) -> Iterator[BuildAttempt]:
    turn = turn_of_this_thread()
    token = None if turn is None else turn.token
    session = SnapshotSession(spark, config.s3_prefix, _build_id(config), token, tasks_gate)
    guarded = Block.of(spark, config.s3_prefix, format="snapshot", step=step, open_session=lambda *_: session)
    with SafeWriter.around(spark, guarded) as block:
        if block.already_committed and block.checkpoint is not None:
            key = published_key(block.checkpoint.attempt.properties)
            yield BuildAttempt(session.names, lambda _: "", earlier=session.publisher.store.uri(key))
            return

        def publish(manifest: Manifest) -> str:
            _wait_for_losers(spark, session.wait_until_quiet)
            session.stage(manifest)
            block.success()
            return session.publisher.store.uri(session.names.manifest_key)

        yield BuildAttempt(session.names, publish, session.base.manifest)


@contextmanager
def _alone(
    spark: SparkSession,
    config: WriteConfig,
    step: str | None,  # noqa: ARG001 - as above
    tasks_gate: Gate | None,
) -> Iterator[BuildAttempt]:
    publisher = Publisher(open_store(config.location))
    names = _build_id(config)
    turn = turn_of_this_thread()
    if turn is not None:
        turn.check()
    token = None if turn is None else turn.token
    base = publisher.base(token)
    scope = BuildScope(spark, config.s3_prefix, tasks_gate)
    scope.begin_group(f"snapshot-{names.build}")
    sent: list[Manifest] = []

    def publish(manifest: Manifest) -> str:
        if turn is not None:
            turn.check()
        _wait_for_losers(spark, scope.wait_until_quiet)
        written = publisher.write_manifest(manifest, base, token=token)
        sent.append(manifest)  # from here on it may be current, even if Ctrl-C interrupts `point`
        publisher.point(written, manifest, base, token=token)
        return written.ref

    try:
        yield BuildAttempt(names, publish, base.manifest)
    except BaseException as error:
        if not sent or isinstance(error, PublishConflictError | ManifestPublishError):
            scope.shut("the build has failed")
            scope.cancel()
            scope.wait_until_quiet(_QUIET_S)
            _tidy(publisher.store, names, None)
        raise
    else:
        _tidy(publisher.store, names, sent[0] if sent else None)
    finally:
        scope.restore()


def _build_id(config: WriteConfig) -> BuildId:
    output = config.output
    run_id = output.run_id or unique_id()
    return BuildId.draw(run_id, output.shard_prefix, output.run_registry_prefix, datetime.now(UTC))


def _wait_for_losers(spark: SparkSession, wait_until_quiet: Callable[[float], bool]) -> None:
    """Wait until Spark has ended losing speculative tasks, so that the clean-up finds their objects."""
    if str(spark.conf.get("spark.speculation", "false")).lower() == "true":
        wait_until_quiet(_QUIET_S)


def _tidy(store: ObjectStore, names: BuildId, published: Manifest | None) -> None:
    """Remove the objects that no manifest names. Only log a failure: the outcome of the build is decided."""
    try:
        names.remove(store, None if published is None else published.folders)
    except StoreError as error:
        _log.warning("%s: soal snapshot cleanup removes what this build has left: %s", store.uri(""), error)
