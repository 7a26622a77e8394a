"""Fetch the files of a job: the script and the Python files, copied from S3 into the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from handler.input_errors import InputError
from handler.module_names import check_archive, stored_name

if TYPE_CHECKING:
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


class DownloadError(Exception):
    """S3 did not return the script, for a reason that may pass; the same invocation may work later."""


@dataclass(frozen=True, slots=True)
class Files:
    """The places of the job's code on this machine."""

    script: Path
    py_files: tuple[Path, ...]


def place(job: Job, sandbox: Sandbox) -> Files:
    """Return where `download` will put the job's code, so that Java can be started before it is there."""
    py_files = (sandbox.scripts / stored_name(location.name) for location in job.py_files)
    return Files(sandbox.scripts / job.entry_point.name, tuple(py_files))


def download(job: Job, files: Files, client: Any) -> None:  # noqa: ANN401 - boto3's S3 client, or a test's
    """Copy the job's code to its place.

    Raises `InputError` for a file that is missing, forbidden or too large, or would hide a module that the job needs;
    `DownloadError` if S3 does not answer.
    """
    _copy(job.entry_point, files.script, client, field="entryPoint", max_mb=_SCRIPT_MAX_MB)
    for index, (location, path) in enumerate(zip(job.py_files, files.py_files, strict=True)):
        field = f"pyFiles[{index}]"
        _copy(location, path, client, field=field, max_mb=_PY_FILE_MAX_MB)
        if path.suffix != ".py":
            _look_into(path, location, field)


def _copy(location: Location, path: Path, client: Any, *, field: str, max_mb: int) -> None:  # noqa: ANN401
    try:
        answer = client.get_object(Bucket=location.bucket, Key=location.key)
        if answer["ContentLength"] > max_mb * _MIB:
            raise InputError(field, f"{location} has {answer['ContentLength'] // _MIB} MB; {max_mb} MB are allowed")
        with path.open("xb") as file:
            for chunk in answer["Body"].iter_chunks(_CHUNK):
                file.write(chunk)
    except ClientError as error:
        raise _refusal(error, location, field) from error
    except BotoCoreError as error:
        raise DownloadError(f"{location} could not be read: {error}") from error


def _look_into(path: Path, location: Location, field: str) -> None:
    try:
        check_archive(path)
    except ValueError as error:
        raise InputError(field, f"{location} {error}") from None


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
