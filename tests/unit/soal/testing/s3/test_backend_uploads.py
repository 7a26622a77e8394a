"""The emulated S3 lists unfinished multipart uploads with the time at which each really began."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.backend import Moto


def test_an_upload_was_begun_when_it_was() -> None:
    """Each upload is listed with its true start time; an upload begun without the emulator keeps moto's date."""
    backend = Moto()
    with EmbeddedS3(buckets=["lake"], backend=backend) as s3:
        client = s3.client()
        begun = [client.create_multipart_upload(Bucket="lake", Key=key)["UploadId"] for key in ("a", "b")]
        for looking in (client, s3.observer()):
            listed = looking.list_multipart_uploads(Bucket="lake")["Uploads"]
            assert [upload["UploadId"] for upload in listed] == begun
            assert all(abs(datetime.now(UTC) - upload["Initiated"]) < timedelta(minutes=5) for upload in listed)
        backend._beginnings._at.clear()
        assert {upload["Initiated"].year for upload in client.list_multipart_uploads(Bucket="lake")["Uploads"]} == {
            2010
        }
