"""The tests' addition to moto's Glue refuses a second change of the same version of a table."""

from __future__ import annotations

import boto3
import pytest

from soal.testing.s3 import EmbeddedS3
from tests.support.glue_versions import check_versions

TABLE = {"DatabaseName": "versions"}


def test_a_version_is_changed_once() -> None:
    """Of two changes of one version the second is refused and changes nothing; a change without a version is not."""
    check_versions()
    with EmbeddedS3() as aws:
        glue = boto3.client("glue", endpoint_url=aws.endpoint)
        glue.create_database(DatabaseInput={"Name": "versions"})
        glue.create_table(**TABLE, TableInput={"Name": "t"})
        read = glue.get_table(**TABLE, Name="t")["Table"]["VersionId"]

        glue.update_table(**TABLE, TableInput={"Name": "t", "Owner": "first"}, VersionId=read)
        with pytest.raises(glue.exceptions.ConcurrentModificationException, match="not 1"):
            glue.update_table(**TABLE, TableInput={"Name": "t", "Owner": "second"}, VersionId=read)
        assert glue.get_table(**TABLE, Name="t")["Table"]["Owner"] == "first"

        glue.update_table(**TABLE, TableInput={"Name": "t", "Owner": "third"})
        assert glue.get_table(**TABLE, Name="t")["Table"]["Owner"] == "third"
        glue.delete_database(Name="versions")  # a process has only one Glue of moto's
