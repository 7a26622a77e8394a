"""The uploads of a process share a client."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock, Mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from safewriter.objects.store import StoreError
from safewriter.snapshots.write import upload
from safewriter.snapshots.write.upload import Uploader, uploader_of

if TYPE_CHECKING:
    from pathlib import Path


def test_tasks_of_a_process_share_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one for each endpoint: a session may switch to another S3."""
    made = Mock()
    monkeypatch.setattr(upload, "s3_client", made)
    try:
        assert uploader_of("http://one.example") is uploader_of("http://one.example")
        assert uploader_of("http://two.example") is not uploader_of("http://one.example")
        assert made.call_count == 2
    finally:
        uploader_of.cache_clear()


def test_an_upload_that_cannot_be_aborted_fails_with_its_own_error(tmp_path: Path) -> None:
    """After a lost answer there may be no upload to abort."""
    client = MagicMock()
    client.upload_part.return_value = {"ETag": "one"}
    client.complete_multipart_upload.side_effect = ReadTimeoutError(endpoint_url="http://one.example")
    client.abort_multipart_upload.side_effect = ClientError({"Error": {"Code": "NoSuchUpload"}}, "AbortMultipartUpload")
    shard = tmp_path / "shard.db"
    shard.write_bytes(b"12")
    with pytest.raises(StoreError, match="Read timeout"):
        Uploader(client, part_bytes=1, sleep=Mock()).upload(shard, "s3://lake/shard.db")
