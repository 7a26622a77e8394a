"""What an operator sees: runs, logs, the doctor, and nothing to recover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scripts.demonstration.account.stage import Journey

_INVENTED: Final = frozenset({"role", "sweeper's role", "retention"})
"""What the doctor finds wrong in ministack, and would not on AWS: docs/guides/local."""
_BAD: Final = ("fail", "warn")


def operated(journey: Journey) -> None:
    """Look at everything, at the end."""
    journey.act("What an operator sees")
    runs = journey.soal("runs", "list", "--json").document or []
    ended = {run["runKey"]: run["state"] for run in runs}
    journey.line("runs", f"{len(runs)}: {', '.join(sorted(set(map(str, ended.values()))))}")
    wanted = {"first": "SUCCESS", "late": "SUCCESS", "hung": "TIMED_OUT"}
    wanted |= dict.fromkeys(("recovered", "killed", "swept"), "SUCCESS")
    journey.check("soal runs lists each run with its end", holds=wanted.items() <= ended.items())
    function = journey.made["FunctionName"]
    logged = journey.soal("logs", "late", "--function", function)
    journey.check("soal logs shows why a job failed, from CloudWatch", holds="Path does not exist" in logged.out)
    found = journey.soal("doctor", "--function", journey.made["InvokeArn"], "--json").document or []
    bad = [one["name"] for one in found if one["status"] in _BAD]
    ringing = journey.client("cloudwatch").describe_alarms(StateValue="ALARM")["MetricAlarms"]
    journey.line("doctor", f"{len(found)} findings; not ok: {', '.join(bad) or 'none'}")
    journey.check(
        f"soal doctor finds the {len(ringing)} alarm(s) that CloudWatch describes as ringing, and nothing else wrong"
        " but what this emulator lacks",
        holds=bool(found) and bad.count("alarm") == len(ringing) and set(bad) <= {"alarm", *_INVENTED},
    )
    left = journey.soal("recover", "--dry-run", "--json")
    journey.check("soal recover finds no open write", holds=left.exit_code == 0)
