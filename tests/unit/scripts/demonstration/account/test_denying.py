from __future__ import annotations

from typing import Any

from scripts.demonstration.account import denying


def test_one_right_on_one_bucket_is_taken_away() -> None:
    """All others stay, or the job would fail for another reason."""
    of_lake = {"Sid": "UseData1", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::lake/*"}
    others = [
        {"Sid": "ReadScripts", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::scripts/*"},
        {"Sid": "WriteDocuments", "Action": ["s3:PutObject", "s3:PutObjectTagging"], "Resource": ["arn:aws:s3:::c/*"]},
    ]
    document: dict[str, Any] = {"Statement": [of_lake, *others]}

    less = denying._without(document, "lake")

    assert less == {"Statement": [{**of_lake, "Action": ["s3:GetObject"]}, *others]}
    assert document["Statement"][0]["Action"] == ["s3:GetObject", "s3:PutObject"]
