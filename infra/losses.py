"""Settings that are each valid, but together lose events or exceed Lambda's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra.config_error import ConfigError
from infra.environment import BYTES_MAX, Made, job_environment, size_bytes, sweeper_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config import Config

__all__ = ["VISIBILITY_IN_TIMEOUTS", "losses", "too_large"]

# SQS must not deliver a message again while its run may still be alive, waits for throttled invocations included.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY_IN_TIMEOUTS: Final = 6


def losses(config: Config) -> Iterator[ConfigError]:
    """Find ways in which an event could fail, or not begin, without a notice to anybody."""
    if config.gradual_deployment is not None and config.errors == "return":
        yield ConfigError(
            "gradual_deployment", config.gradual_deployment, "with errors=return no failed run would take it back"
        )
    for key in ("queue", "schedule", "s3_trigger", "retry_attempts", "redrive_attempts", "continue_max", "durable"):
        if config.errors == "return" and (found := getattr(config, key)):
            yield ConfigError(
                key,
                found,
                "with errors=return nothing counts as failed, so an event of which nobody reads the answer would"
                " vanish; leave errors out, or this",
            )
    returns_after_s = VISIBILITY_IN_TIMEOUTS * config.timeout_s
    if config.queue and config.queue_age_alarm_minutes * 60 <= returns_after_s:
        yield ConfigError(
            "queue_age_alarm_minutes",
            config.queue_age_alarm_minutes,
            f"would ring for the first message that fails: it returns after {returns_after_s // 60} minutes; give"
            " it more than that",
        )
    at_once = config.reserved_concurrency
    if config.queue and at_once is not None and at_once < config.queue_concurrency:
        yield ConfigError(
            "reserved_concurrency",
            at_once,
            f"is less than queue_concurrency={config.queue_concurrency}: messages that are throttled use up their"
            " receives, and become failures that never were a run; give it at least as much",
        )


def too_large(config: Config) -> Iterator[ConfigError]:
    """Find a function whose variables Lambda would refuse."""
    made = Made.longest(config)
    for environment in (job_environment(config, made), sweeper_environment(config, made)):
        if (found := size_bytes(environment)) > BYTES_MAX:
            largest = max(environment, key=lambda name: len(environment[name]))
            yield ConfigError(
                "environment",
                f"{found} bytes",
                f"a function has {BYTES_MAX} bytes for its variables, the stack's own and the JSON around them"
                f" included; the largest is {largest}. Put what is long into an object that the script reads",
            )
