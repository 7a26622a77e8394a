"""Fetch the files of a job: the script and the Python files, copied from S3 into the sandbox."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from handler.input_errors import InputError
from handler.module_names import check_archive, stored_name
from safewriter.errors import TryAgainError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from handler.request.job import Job
    from handler.sandbox.sandbox import Sandbox
    from safewriter.objects import Location

__all__ = ["DownloadError", "Files", "download", "place"]

_SCRIPT_MAX_MB: Final = 10
_PY_FILE_MAX_MB: Final = 250
_MIB: Final = 1024 * 1024
_CHUNK: Final = 256 * 1024
_MISSING: Final = ("NoSuchKey", "NoSuchBucket", "404")
_DENIED: Final = ("AccessDenied", "403")
_ENTRIES_MAX: Final = 65_535
"""The most entries of an archive in the format that every Python can import from."""
_FOLDER_MAX_LENGTH: Final = 255


class DownloadError(TryAgainError):
    """S3 did not return the code for a temporary reason; the same invocation may succeed later."""


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of the job's code on this machine."""

    script: Path
    py_files: tuple[Path, ...]


def place(job: Job, sandbox: Sandbox) -> Files:
    """Return where `download` will put the job's code, so that the JVM can start before the download."""
    py_files = (sandbox.scripts / stored_name(location.name) for location in job.py_files)
    return Files(sandbox.scripts / job.entry_point.name, tuple(py_files))


def download(job: Job, files: Files, client: Any) -> str:  # noqa: ANN401 - boto3's S3 client, or a test's
    """Copy the job's code to its paths; return a hash of S3's content: the SHA-256 of the script, or, if there are
    Python files, of the script and their names and contents.

    Raises `InputError` for a file that is missing, forbidden or too large, that would hide a module which the job
    needs, or has native code; `DownloadError` if S3 does not answer.
    """
    script = _copy(job.entry_point, files.script, client, field="entryPoint", max_mb=_SCRIPT_MAX_MB)
    py_files: list[tuple[str, str]] = []
    for index, (location, path) in enumerate(zip(job.py_files, files.py_files, strict=True)):
        field = f"pyFiles[{index}]"
        py_files.append((path.name, _copy(location, path, client, field=field, max_mb=_PY_FILE_MAX_MB)))
        if path.suffix != ".py":
            _prepare(path, location, field)
    return hashlib.sha256(json.dumps([script, py_files]).encode()).hexdigest() if py_files else script


def _copy(location: Location, path: Path, client: Any, *, field: str, max_mb: int) -> str:  # noqa: ANN401
    content = hashlib.sha256()
    try:
        answer = client.get_object(Bucket=location.bucket, Key=location.key)
        if answer["ContentLength"] > max_mb * _MIB:
            raise InputError(field, f"{location} has {answer['ContentLength'] // _MIB} MB; {max_mb} MB are allowed")
        with path.open("xb") as file:
            for chunk in answer["Body"].iter_chunks(_CHUNK):
                content.update(chunk)
                file.write(chunk)
    except ClientError as error:
        raise _refusal(error, location, field) from error
    except BotoCoreError as error:
        raise DownloadError(f"{location} could not be read: {error}") from error
    return content.hexdigest()


def _prepare(path: Path, location: Location, field: str) -> None:
    try:
        check_archive(path)
        _list_folders(path)
    except ValueError as error:
        raise InputError(field, f"{location} {error}") from None


def _list_folders(path: Path) -> None:
    """Add folder entries for packages without `__init__`: Python finds such a package in an archive only by the entry
    of its folder, and wheels list only files.
    """
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    folders = _unlisted_folders(names)
    if not folders:
        return
    if len(names) + len(folders) > _ENTRIES_MAX:
        raise ValueError(
            f"holds {len(names)} files, and {len(folders)} folders with modules but without an __init__.py: together"
            f" more than the {_ENTRIES_MAX} that Python can import from; split it"
        )
    with zipfile.ZipFile(path, "a") as archive:
        for folder in folders:
            archive.mkdir(folder)


def _unlisted_folders(names: Sequence[str]) -> list[str]:
    """Return the folders that hold modules, at any depth, but have neither an `__init__` nor an entry."""
    listed, folders = set(names), set[str]()
    for name in names:
        folder = name.rpartition("/")[0] if name.endswith((".py", ".pyc")) else ""
        # A longer name cannot be a module's, and handling each of its parent folders would take its length.
        while folder and folder not in folders and len(folder) <= _FOLDER_MAX_LENGTH:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    of_packages = ("/", "/__init__.py", "/__init__.pyc")
    return sorted(folder for folder in folders if listed.isdisjoint(f"{folder}{end}" for end in of_packages))


def _refusal(error: ClientError, location: Location, field: str) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    if code in _MISSING:
        return InputError(field, f"{location} does not exist; upload it or correct the path")
    if code in _DENIED:
        return InputError(
            field,
            f"{location} does not exist, or the function's role may not read it; upload it, or allow s3:GetObject",
        )
    return DownloadError(f"{location} could not be read: {error}")
