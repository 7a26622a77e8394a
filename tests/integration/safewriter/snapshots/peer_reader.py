"""Read a snapshot with shardyfusion alone, in a process of its own: `python peer_reader.py`.

A line of JSON on stdin names the snapshot and the keys; one on stdout holds the values. Imports none of SoAL's modules.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import obstore
from obstore.store import S3Store
from shardyfusion.reader import ShardedReader
from shardyfusion.run_registry import parse_run_record
from shardyfusion.sqlite_adapter import SqliteReaderFactory


def record_of(order: dict[str, Any]) -> Any:
    """Return the run's record."""
    bucket, _, key = order["run_record_ref"].removeprefix("s3://").partition("/")
    store = S3Store(
        bucket, endpoint=order["endpoint"], client_options={"allow_http": True}, virtual_hosted_style_request=False
    )
    return parse_run_record(bytes(obstore.get(store, key).bytes()))


def main() -> None:
    """Read once with shardyfusion's reader, and the run's record with its parser."""
    order: dict[str, Any] = json.loads(sys.stdin.read())
    record = None if order["run_record_ref"] is None else record_of(order)
    with tempfile.TemporaryDirectory() as folder:
        # Its default is SlateDB.
        reader = ShardedReader(s3_prefix=order["prefix"], local_root=folder, reader_factory=SqliteReaderFactory())
        context = {"routing_context": order["context"]} if order["context"] else {}
        values = {str(key): reader.get(key, **context) for key in order["keys"]}
        info = reader.snapshot_info()
        shards = [detail.row_count for detail in reader.shard_details()]
        reader.close()
    told = {
        "values": {key: None if value is None else value.decode() for key, value in values.items()},
        "run_id": info.run_id,
        "num_dbs": info.num_dbs,
        "rows": sum(shards),
        "status": getattr(getattr(record, "status", None), "value", getattr(record, "status", None)),
    }
    print(json.dumps(told))  # noqa: T201 - how it answers


if __name__ == "__main__":
    main()
