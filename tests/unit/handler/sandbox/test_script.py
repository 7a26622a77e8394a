"""The handler fetches a job's script and Python files from S3, and refuses large, missing or unreadable ones."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.response import StreamingBody

from handler.input_errors import InputError
from handler.request.job import requested
from handler.sandbox.sandbox import open_sandbox
from handler.sandbox.script import DownloadError, download, place
from handler.settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
JOB = requested({"script": "s3://scripts/a/job.py", "pyFiles": ["s3://library/b/x.zip"]}, SETTINGS, "r").job


class Client:
    def __init__(self, objects: dict[str, bytes | Exception]) -> None:
        self.objects = objects

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        found = self.objects[f"{Bucket}/{Key}"]
        if isinstance(found, Exception):
            raise found
        return {"ContentLength": len(found), "Body": StreamingBody(io.BytesIO(found), len(found))}


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return content.getvalue()


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "GetObject")


def test_script_and_python_files_are_copied(tmp_path: Path) -> None:
    """They keep their last names, side by side."""
    client = Client({"scripts/a/job.py": b"print(1)", "library/b/x.zip": zipped("handler/__init__.py")})
    with open_sandbox(tmp_path) as sandbox:
        files = place(JOB, sandbox)
        download(JOB, files, client)
        assert files.script.read_bytes() == b"print(1)"
        assert [path.name for path in files.py_files] == ["x.zip"]


@pytest.mark.parametrize(
    ("code", "words"),
    [("NoSuchKey", "does not exist"), ("NoSuchBucket", "does not exist"), ("AccessDenied", "s3:GetObject")],
)
def test_what_the_caller_can_mend_is_a_usage_error(tmp_path: Path, code: str, words: str) -> None:
    """The error names the field: the script, or the index in pyFiles."""
    with open_sandbox(tmp_path) as sandbox, pytest.raises(InputError, match=words) as caught:
        download(JOB, place(JOB, sandbox), Client({"scripts/a/job.py": refused(code)}))
    assert caught.value.field == "entryPoint"
    with open_sandbox(tmp_path) as sandbox, pytest.raises(InputError, match=words) as caught:
        download(JOB, place(JOB, sandbox), Client({"scripts/a/job.py": b"", "library/b/x.zip": refused(code)}))
    assert caught.value.field == "pyFiles[0]"


@pytest.mark.parametrize("error", [refused("InternalError"), EndpointConnectionError(endpoint_url="http://x")])
def test_a_store_that_fails_is_another_matter(tmp_path: Path, error: Exception) -> None:
    """The same invocation may succeed later."""
    with open_sandbox(tmp_path) as sandbox, pytest.raises(DownloadError):
        download(JOB, place(JOB, sandbox), Client({"scripts/a/job.py": error}))


def test_a_script_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """It is refused before a byte of it is read."""
    with open_sandbox(tmp_path) as sandbox:
        with pytest.raises(InputError, match="10 MB are allowed"):
            download(JOB, place(JOB, sandbox), Client({"scripts/a/job.py": bytes(11 * 1024 * 1024)}))
        assert list(sandbox.scripts.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped("a.py", "json.py"), r"s3://library/b/x\.zip holds json\.py, which would hide json of Python's"),
        (zipped("safewriter/__init__.py"), "holds safewriter/__init__.py, which would hide safewriter, the guard"),
        (zipped("fast/_c.abi3.so"), r"x\.zip holds fast/_c\.abi3\.so: native code, which Python cannot load"),
        (b"PK", "is no zip file"),
    ],
)
def test_a_zip_that_the_job_could_not_use_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """It is checked after the download, before the script runs; so is one that Python could not read."""
    client = Client({"scripts/a/job.py": b"", "library/b/x.zip": content})
    with open_sandbox(tmp_path) as sandbox, pytest.raises(InputError, match=words) as caught:
        download(JOB, place(JOB, sandbox), client)
    assert caught.value.field == "pyFiles[0]"


WHEEL = zipped(
    "acme/cloud/thing.py",
    "acme/cloud/deep/er.pyc",
    "acme/own/__init__.py",
    "acme/own/sub/a.py",
    "acme-1.dist-info/RECORD",
)


def fetched(tmp_path: Path, content: bytes, code: str) -> list[str]:
    """Return the names in the archive of a job after `code` has run with it on the path."""
    event = {"script": "s3://scripts/a/job.py", "pyFiles": ["s3://library/acme-1-py3-none-any.WHL"]}
    job = requested(event, SETTINGS, "r").job
    client = Client({"scripts/a/job.py": b"", "library/acme-1-py3-none-any.WHL": content})
    with open_sandbox(tmp_path) as sandbox:
        files = place(job, sandbox)
        download(job, files, client)
        (path,) = files.py_files
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[0] = {str(path)!r}; {code}"], check=True, timeout=60
        )
        with ZipFile(path) as archive:
            assert archive.testzip() is None
            return archive.namelist()


def test_packages_without_init_can_be_imported_from_a_wheel(tmp_path: Path) -> None:
    """Python needs the entries of their folders, which the wheel lacks; other folders get none."""
    names = fetched(tmp_path, WHEEL, "import acme.cloud.thing, acme.own.sub.a; from acme.cloud import deep")
    assert [name for name in names if name.endswith("/")] == [
        "acme/",
        "acme/cloud/",
        "acme/cloud/deep/",
        "acme/own/sub/",
    ]


def test_an_archive_with_all_it_needs_stays_as_it_is(tmp_path: Path) -> None:
    """No entry is made twice, and names that cannot be modules cost nothing."""
    deep = "a/" * 30_000 + "b.py"
    content = zipped("acme/", "acme/thing.py", "own/__init__.py", "own/data/a.json", deep)
    assert fetched(tmp_path, content, "import acme.thing, own") == [
        "acme/", "acme/thing.py", "own/__init__.py", "own/data/a.json", deep
    ]  # fmt: skip


def test_more_folders_than_python_reads_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python could import nothing from such an archive."""
    monkeypatch.setattr("handler.sandbox.script._ENTRIES_MAX", 8)
    with pytest.raises(InputError, match=r"holds 5 files, and 4 folders with modules .* split it"):
        fetched(tmp_path, WHEEL, "pass")
