"""Made-up facts for pictures: true to every claim, with numbers that no run had."""

from __future__ import annotations

from tests.lab.pictures.facts import Facts, KilledJob, Moment, Place, SeenTable, TracedRequest, TracedWrite

__all__ = ["FACTS", "state"]

BEFORE = 70_001
BATCH = 5_432


def state(
    batches: int, *, orphans: int = 0, markers: int = 0, status: str | None = None, epoch: int | None = None
) -> SeenTable:
    """A table that holds the batch `batches` times."""
    return SeenTable(BEFORE + batches * BATCH, 1 + batches, orphans, markers, status, epoch)


def _request(at_ms: int, operation: str, key_class: str, key: str, condition: str | None = None) -> TracedRequest:
    place: Place = "checkpoints" if key_class in {"marker", "checkpoint"} else "table"
    return TracedRequest(at_ms, operation, place, key_class, key, condition, 200, 2_048)


def _guarded(moment: Moment, killed: SeenTable) -> KilledJob:
    return KilledJob(
        is_guarded=True,
        moment=moment,
        before=state(0),
        killed=killed,
        retried=state(1, status="committed", epoch=2 if moment == "written" else 1),
        retry="SUCCESS",
    )


FACTS = Facts(
    commit="0123456789abcdef0123",
    versions={"soal": "9.9", "pyspark": "8.7.6", "delta-spark": "7.6.5", "deltalake": "6.5.4", "moto": "5.4.3"},
    batch_rows=BATCH,
    write=TracedWrite(
        (
            _request(0, "PutObject", "marker", "open/w/n"),
            _request(1_111, "PutObject", "checkpoint", "checkpoints/w.json", "If-None-Match: *"),
            _request(2_222, "PutObject", "data", "t/a.parquet"),
            _request(2_233, "PutObject", "data", "t/b.parquet"),
            _request(
                3_333, "PutObject", "delta_log/commit", "t/_delta_log/00000000000000000007.json", "If-None-Match: *"
            ),
            _request(4_444, "GetObject", "delta_log/commit", "t/_delta_log/00000000000000000007.json"),
            _request(5_555, "PutObject", "checkpoint", "checkpoints/w.json", 'If-Match: "0"'),
            _request(6_666, "DeleteObject", "marker", "open/w/n"),
        ),
        BEFORE + BATCH,
    ),
    kills=(
        KilledJob(
            is_guarded=False,
            moment="written",
            before=state(0),
            killed=state(0, orphans=13),
            retried=state(1, orphans=13),
            retry="SUCCESS",
        ),
        KilledJob(
            is_guarded=False, moment="landed", before=state(0), killed=state(1), retried=state(2), retry="SUCCESS"
        ),
        _guarded("marked", state(0, markers=1)),
        _guarded("written", state(0, orphans=17, markers=1, status="in_progress", epoch=1)),
        _guarded("landed", state(1, markers=1, status="in_progress", epoch=1)),
        _guarded("settled", state(1, markers=1, status="committed", epoch=1)),
    ),
)
