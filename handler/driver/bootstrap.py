"""The driver's entry point: run the user's script as if Spark had started it, and record its end in the journal.

`python bootstrap.py SCRIPT ARGUMENT…`, or in a process that `server.py` has forked. The script runs in the real
`__main__`, so that its definitions can be pickled for Python workers. PySpark is patched only in `script_settings`
(leaves out settings of the script that cannot work here), `guard_warm_up` (prepares a guard while Spark starts) and
`pyspark_fixes`.

A job may have its own `handler` module. So this process first imports all it needs of SoAL's `handler`, and then
removes it from the import path and from `sys.modules`: of SoAL's packages a script can import only `safewriter`.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import pwd
import random
import sys
import threading
import time
import zipfile
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from safewriter.record.journal import Event

_MESSAGE_MAX_BYTES: Final = 60_000
"""As JSON: a line of the journal holds 64 KiB. The handler masks the message before it truncates it."""
_MESSAGE_CUT: Final = 4000
_USER: Final = "soal"
_SHARED: Final = frozenset({"pyspark", "py4j", "safewriter"})
"""A job's own modules of these names are refused before it starts."""
_GO_POLL_S: Final = 0.005
_POLL_S: Final = 0.01
_POLL_SLOW_S: Final = 0.2
_POLL_FAST_MAX: Final = 2000


def main(module: ModuleType) -> None:
    """Run the script that `sys.argv` names in `module`; exit as the script exits."""
    from handler.driver.batch_errors import behind
    from handler.driver.guard_warm_up import GuardWarmUp
    from handler.driver.message import message_of
    from handler.driver.raised import described, exit_code_of, line_of, refusal_of
    from handler.process.tree import die_with_parent
    from safewriter.entropy import unique_id

    die_with_parent()
    of_workers, archives = _take_job()
    random.seed(unique_id())  # copies of a snapshot may get the same bytes from the kernel, with which Python seeds it
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    _prefer_installed()
    journal = os.environ.get("SOAL_JOURNAL")
    _note(journal, "python_started")
    if journal:
        threading.Thread(target=_watch_for_session, args=(journal,), name="soal-session", daemon=True).start()
    warm_up = GuardWarmUp()
    code, own, places, refusal = 1, os.getpid(), [str(Path(script).parent), *archives], {}
    try:
        if has_gateway := "PYSPARK_GATEWAY_PORT" in os.environ:
            _join_spark(journal, of_workers)
        _wait_for(os.environ.get("SOAL_GO"))
        _leave_names_to_the_job(places)
        source = Path(script).read_bytes()
        if has_gateway and b"safewriter" in source:
            warm_up.install()
        _run(module, script, source)
        code = 0
    except (SystemExit, Exception) as error:  # noqa: BLE001 - whatever the script does not catch
        if isinstance(end := behind(error) or error, SystemExit):
            code = _code(end.code)
            if code:
                reason, is_parsers = refusal_of(end)
                refusal = {**_bounded(reason), "line": line_of(end, places), "ofArguments": is_parsers}
            raise end from None
        journal = _of(own, journal)
        code = exit_code_of(error)
        told = {**_bounded(message_of(error)), "line": line_of(error, places), "exitCode": code}
        _uncaught(error, told, described(error), script, journal)
        sys.exit(code)
    finally:
        _note(_of(own, journal), "python_exited", exitCode=code, **refusal)
        warm_up.join()
        # At exit Python collects garbage once more, through all of PySpark and boto3: a tenth of a second.
        gc.freeze()


def _run(module: ModuleType, script: str, source: bytes) -> None:
    names = module.__dict__
    kept = {name: names[name] for name in ("__name__", "__builtins__")}
    names.clear()
    names.update(kept, __file__=script, __doc__=None, __package__=None, __spec__=None, __loader__=None, __cached__=None)
    exec(compile(source, script, "exec", dont_inherit=True), names)  # noqa: S102 - this is what the handler is for


def _join_spark(journal: str | None, of_workers: dict[str, str]) -> None:
    from handler.driver import pyspark_fixes
    from handler.driver.script_settings import OwnSettings

    pyspark_fixes.install()
    if _is_nameless(os.getuid()):
        _log_in()
    OwnSettings(
        lambda key, why: _note(journal, "setting_ignored", key=key, why=why),
        of_workers,
        on_secret=lambda: _note(journal, "secret_set"),
    ).install()


def _wait_for(go: str | None) -> None:
    """Wait until the handler has written the run's record and fetched the script, which it does while Java starts."""
    while go is not None and not Path(go).exists():
        time.sleep(_GO_POLL_S)


def begin() -> None:
    """Import what every job needs, before a job arrives."""
    from handler.driver import guard_warm_up, message, pyspark_fixes, raised, script_settings  # noqa: F401
    from handler.process.tree import die_with_parent
    from safewriter.record import journal  # noqa: F401

    die_with_parent()
    _prefer_installed()
    import pyspark.sql  # noqa: F401


@functools.cache
def begin_guard() -> None:
    """Import what guarded jobs need besides, and read what a client of S3 does: once in a process."""
    import safewriter.block.warmup
    import safewriter.objects.s3  # noqa: F401
    from safewriter.objects.client import read_description

    read_description("s3")


def _take_job() -> tuple[dict[str, str], list[str]]:
    """Set the job's variables, which its JVM does not have. Return the variables with which the JVM starts Python
    workers, and the archives with the job's modules.

    Variables and properties may hold secrets, and a job could be given a path to them: delete the files after reading.
    """
    from handler.driver.worker_variables import serve
    from safewriter.coordination.borrowed import VARIABLE as TURN_VARIABLE
    from safewriter.parsing import parsed

    path = os.environ.pop("SOAL_JOB", None)
    if path is None:
        return {}, []
    job = parsed(Path(path).read_bytes())
    variables = job["variables"]
    os.environ.update(variables)
    for file in (path, job["properties"]):
        Path(file).unlink(missing_ok=True)
    place = str(Path(path).with_name("variables"))
    serve({name: value for name, value in variables.items() if name != TURN_VARIABLE}, place)
    return {"SOAL_VARIABLES": place}, list(job["archives"])


def _prefer_installed() -> None:
    """Import PySpark from pip's compiled installation: Spark puts its own copies (zip files and a jar) before it on the
    path, and Python would compile those at each start, for a third of a second.
    """
    spark_home = os.environ.get("SPARK_HOME")
    if spark_home:
        sys.path[:] = [entry for entry in sys.path if Path(spark_home) not in Path(entry).parents]


def _leave_names_to_the_job(places: list[str]) -> None:
    """Let the script import from its own places, and nothing from the handler: do not import from it after this call.

    Imported modules continue to work, since functions keep the globals of their module.
    """
    sys.path[:1] = places
    provided = {"handler", *_provided(places)} - _SHARED - sys.stdlib_module_names
    for name in [name for name in sys.modules if name.partition(".")[0] in provided]:
        del sys.modules[name]


def _provided(places: list[str]) -> set[str]:
    """Return the names of the job's own modules: an imported module of the same name must not hide them."""
    names: set[str] = set()
    for place in map(Path, places):
        if place.is_dir():
            names.update(entry.name.partition(".")[0] for entry in place.iterdir())
        else:
            with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(place) as archive:
                names.update(name.partition("/")[0].partition(".")[0] for name in archive.namelist())
    return names


def _is_nameless(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return True
    return False


def _log_in() -> None:
    """Log a user in to Hadoop, which fails for a user id without a row in passwd (HADOOP-19401). Such ids are usual in
    containers. The script uses the same connection to the JVM.
    """
    from pyspark import SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - a connection of our own would be a tenth of a second more
    jvm = SparkContext._jvm  # noqa: SLF001
    if jvm is None:
        raise AssertionError  # for the type checker
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(_USER))


def _bounded(message: str | None) -> dict[str, Any]:
    """Return the fields of a message, of which a line of the journal can hold only so much."""
    if message is None or len(json.dumps(message)) <= _MESSAGE_MAX_BYTES:
        return {"message": message, "isCut": False}
    return {"message": message[:_MESSAGE_CUT], "isCut": True}


def _uncaught(
    error: BaseException, told: dict[str, Any], entries: list[dict[str, Any]], script: str, journal: str | None
) -> None:
    """Record the exception, and show the script's traceback without our frames."""
    for entry in entries:
        _note(journal, "raised", **entry)
    _note(journal, "uncaught", type=type(error).__name__, **told)
    trace = _from_script(error.__traceback__, script)
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """Drop the frames before the script's own; all of them if the script could not be compiled."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


def _code(code: object) -> int:
    """Return the exit code of `sys.exit(code)`."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _watch_for_session(journal: str) -> None:
    """Record when the script's session is ready. Poll for it: PySpark has no hook."""
    for pause_s in chain(repeat(_POLL_S, _POLL_FAST_MAX), repeat(_POLL_SLOW_S)):
        sql = sys.modules.get("pyspark.sql.session")
        if sql is not None and getattr(getattr(sql, "SparkSession", None), "_instantiatedSession", None) is not None:
            _note(journal, "session_ready")
            return
        time.sleep(pause_s)


def _of(process: int, journal: str | None) -> str | None:
    """Return the journal in the process that runs the job; None in one that the script has forked from it."""
    return journal if os.getpid() == process else None


def _note(journal: str | None, event: Event, **fields: object) -> None:
    if journal:
        from safewriter.record import journal as lines

        with suppress(OSError):  # the script may have filled the disk, or deleted its directory; its end stays the same
            lines.append(journal, event, **fields)


if __name__ == "__main__":
    # Python puts the folder of this file there, but `handler` is two folders up.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    # The imported copy keeps its names when the script takes `__main__` over.
    from handler.driver import bootstrap  # noqa: PLW0406

    bootstrap.main(sys.modules["__main__"])
