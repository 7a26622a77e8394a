"""Wait for a durable execution, as a command does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soal.console.problem import EXIT_TRY_AGAIN, Problem

if TYPE_CHECKING:
    from soal.console.output import Output
    from soal.console.progress import JobProgress
    from soal.invocation.report import Report
    from soal.remote.execution import Execution

__all__ = ["followed"]


def followed(execution: Execution, run_key: str | None, out: Output, progress: JobProgress) -> Report:
    """Show an execution's attempts until it has ended. Raises `Problem` if somebody stops that: it goes on."""
    out.remark(f"started the execution {execution.arn}")
    try:
        return execution.report(progress.says)
    except KeyboardInterrupt:
        key = run_key or execution.arn.rpartition("/")[2]
        raise Problem(
            "nobody waits any more; the execution goes on",
            todo=f"look again with: soal runs show {key}; end it with: soal runs cancel {key}",
            exit_code=EXIT_TRY_AGAIN,
        ) from None
