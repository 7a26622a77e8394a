"""Find settings that are valid on their own but contradict each other; and `ConfigError`, the error of all settings.

Contradictory settings may lose events, exceed Lambda's limits, give a job a right in a place where another setting
denies it, or make a function that refuses every event (by the handler's own check).
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from handler.deployable import refusal
from handler.variables import VARIABLES
from infra.config import FAILURE_QUEUE_DAYS
from infra.environment import (
    BYTES_MAX,
    Resources,
    job_environment,
    microvm_environment,
    size_bytes,
    sweeper_environment,
)
from infra.secrets import regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config import Config
    from infra.places import BucketPrefix


class ConfigError(ValueError):
    """A context value that cannot be used: the key, the value, and the remedy."""

    def __init__(self, key: str, value: object, remedy: str) -> None:
        super().__init__(f"context {key}={value}: {remedy}")
        self.key = key
        self.remedy = remedy


# SQS must not deliver a message again while its run may be alive, including the wait for throttled invocations.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY_IN_TIMEOUTS: Final = 6


def losses(config: Config) -> Iterator[ConfigError]:
    """Yield settings with which an event could fail, or not start, without any notice."""
    if config.gradual_deployment is not None and config.errors == "return":
        yield ConfigError(
            "gradual_deployment", config.gradual_deployment, "with errors=return no failed run would take it back"
        )
    for key in (
        "queue",
        "schedule",
        "schedules",
        "s3_trigger",
        "retry_attempts",
        "redrive_attempts",
        "continue_max",
        "durable",
    ):
        if config.errors == "return" and (value := getattr(config, key)):
            yield ConfigError(
                key,
                value,
                "with errors=return nothing counts as failed, so an event of which nobody reads the answer would"
                " vanish; leave errors out, or this",
            )
    if config.state_machine and config.errors == "return":
        yield ConfigError(
            "state_machine",
            "true",
            "reads the error of a failed run, and with errors=return there is none; leave one out",
        )
    if config.state_machine and config.continue_max > 0:
        yield ConfigError(
            "continue_max",
            config.continue_max,
            "both the function and the state machine would make a run's next attempt; leave out state_machine, or this",
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
    """Yield an error for each function whose variables Lambda would refuse."""
    resources = Resources.longest(config)
    for environment in (job_environment(config, resources), sweeper_environment(config, resources)):
        if (size := size_bytes(environment)) > BYTES_MAX:
            largest = max(environment, key=lambda name: len(environment[name]))
            yield ConfigError(
                "environment",
                f"{size} bytes",
                f"a function has {BYTES_MAX} bytes for its variables, the stack's own and the JSON around them"
                f" included; the largest is {largest}. Put what is long into an object that the script reads",
            )


def overlaps(config: Config) -> Iterator[tuple[str, BucketPrefix, str]]:
    """Yield key, value and remedy of places that overlap with conflicting rights."""
    for place in config.data:
        problem = f"jobs write there (data={place})"
        if config.s3_trigger is not None and _overlap(config.s3_trigger, place):
            remedy = f"{problem}, and would start themselves; keep what they read apart from what they write"
            yield "s3_trigger", config.s3_trigger, remedy
        if config.scripts is not None and _overlap(config.scripts, place):
            remedy = f"{problem}, and one could replace the script of the next; keep scripts apart from data"
            yield "scripts", config.scripts, remedy
        for place_read in config.read_only_data:
            # The reverse is allowed: tables inside a read-only place, data=lake/tables, read_only_data=lake.
            if place_read.is_below(place):
                yield "read_only_data", place_read, f"{problem}; take it out of data"
    if config.scripts is not None:
        yield from _of_producers(config, config.scripts)
    yield from _in_own_buckets(config)


def _of_producers(config: Config, scripts: BucketPrefix) -> Iterator[tuple[str, BucketPrefix, str]]:
    """Yield the scripts' place if others bring objects there, which could then be started."""
    remedy = "and what somebody puts there could be started as a script; keep scripts apart from data"
    if config.s3_trigger is not None and _overlap(scripts, config.s3_trigger):
        yield "scripts", scripts, f"its new objects are events (s3_trigger={config.s3_trigger}), {remedy}"
    for place in config.read_only_data:
        # The reverse is allowed: scripts inside a read-only place, scripts=lake/scripts, read_only_data=lake.
        if place.is_below(scripts):
            yield "scripts", scripts, f"holds data that jobs read (read_only_data={place}), {remedy}"


def _in_own_buckets(config: Config) -> Iterator[tuple[str, BucketPrefix, str]]:
    """Refuse the stack's own buckets, by CloudFormation's names. Scripts may be in the bucket of a deleted stack."""
    checkpoints, scripts, lake = (
        re.compile(rf"{re.escape(config.stack_name.lower())}-{kind}bucket[0-9a-f]{{8}}-.+")
        for kind in ("checkpoints", "scripts", "lake")
    )
    places_of = {
        "data": config.data,
        "read_only_data": config.read_only_data,
        "s3_trigger": () if config.s3_trigger is None else (config.s3_trigger,),
        "scripts": () if config.scripts is None else (config.scripts,),
    }
    for key, places in places_of.items():
        for place in places:
            if checkpoints.fullmatch(place.bucket) or (key != "scripts" and scripts.fullmatch(place.bucket)):
                yield key, place, "is a bucket of the stack's own, in which the roles may do just what they need to"
            if config.lake_bucket and key in ("s3_trigger", "scripts") and lake.fullmatch(place.bucket):
                yield key, place, "is the stack's own (lake_bucket=true), and jobs write there; name another one"


def _overlap(place: BucketPrefix, other: BucketPrefix) -> bool:
    return place.is_below(other) or other.is_below(place)


_KEYS: Final = {variable.name: variable.key for variable in VARIABLES if variable.key is not None}
_OF_ONE_VALUE: Final = {"memory size": "memory_mb", "conf": "conf"}
_PREDECESSOR: Final = "predecessor"


def refusals(config: Config) -> Iterator[ConfigError]:
    """Yield the first setting that the handler would refuse, by its context key."""
    # These names appear in the handler's messages, which mention keys below SCRIPT_BUCKET.
    scripts = "scripts" if config.scripts is None else str(config.scripts)
    resources = Resources(config.stack_name, "checkpoints", scripts)
    has_triggers = config.schedule is not None or config.s3_trigger is not None
    fault = refusal(job_environment(config, resources), memory_mb=config.memory_mb, has_triggers=has_triggers)
    if fault is None and config.microvm_timeout_s is not None:
        environment = microvm_environment(config, resources)
        fault = refusal(environment, memory_mb=config.microvm_memory_mb, has_triggers=False)
    if fault is None:
        return
    (path, problem) = fault
    variable, _, rest = path.partition(".")
    key = _KEYS.get(variable) or _OF_ONE_VALUE.get(variable, "environment")
    value = rest if key in ("conf", "turns") else variable if key == "environment" else getattr(config, key)
    yield ConfigError(key, value or "…", problem)


def unknown_predecessors(config: Config) -> list[str]:
    """Return the jobs that wait for a job unknown to the stack, which may take its turns elsewhere."""
    return [
        f"{lock}.{job} waits for {before}"
        for lock, jobs in config.turns.items()
        for job, keys in jobs.items()
        for key, before in keys.items()
        if key.removeprefix("job.coordinator.") == _PREDECESSOR and before not in jobs
    ]


_ATTEMPTS_MAX: Final = 1500
"""An execution has 3,000 operations, and an attempt and the pause after it are two.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""


def contradictions(config: Config) -> Iterator[ConfigError]:
    """Yield settings that contradict each other, the gravest first."""
    for key in ("schedule", "s3_trigger"):
        if getattr(config, key) is not None and config.entry_point is None:
            yield ConfigError(key, getattr(config, key), "its events name no script; set entry_point to the one to run")
    yield from (ConfigError(*overlap) for overlap in overlaps(config))
    if config.image_variant != "slim" and config.image_uri is not None:
        yield ConfigError(
            "image_variant", config.image_variant, "image_uri names an image that is built; leave one out"
        )
    if config.conditional_commits and not config.lake_bucket:
        yield ConfigError("conditional_commits", "true", "is about the lake bucket; set lake_bucket=true")
    yield from _of_sizes(config)
    yield from losses(config)
    yield from _of_provisioned(config)
    yield from _of_documents(config)
    yield from _of_durable(config)
    for key in ("environment", "conf"):
        for name in config.secrets.keys() & getattr(config, key).keys():
            yield ConfigError("secrets", name, f"is in {key}, too; take it out of one of the two")
    if config.secret_kms_key_arns and not config.secrets:
        yield ConfigError("secret_kms_key_arns", ",".join(config.secret_kms_key_arns), "set secrets, which they keep")
    yield from _of_network(config)
    if config.network == "own" and len(regions := regions_of(config)) > 1:
        yield ConfigError(
            "secrets",
            f"{len(config.secrets)} of them",
            f"they are of {' and '.join(regions)}, and network=own reaches Secrets Manager of the stack's region only;"
            " replicate them there, or use network=existing",
        )
    yield from too_large(config)
    yield from refusals(config)


_SIZES_MAX: Final = {"timeout_s": 900, "memory_mb": 10_240}
"""https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
_MANAGED_MEMORY_MIN_MB: Final = 2048


def _of_sizes(config: Config) -> Iterator[ConfigError]:
    """Yield errors about the function's time and memory, and about Managed Instances."""
    if config.capacity_provider is None:
        for key, most in _SIZES_MAX.items():
            if getattr(config, key) > most:
                yield ConfigError(
                    key,
                    getattr(config, key),
                    f"must be less than or equal to {most}; only Managed Instances give more: set capacity_provider",
                )
    else:
        yield from _of_managed(config)
    if config.microvm_timeout_s is not None:
        yield from _of_microvm(config)
    longest_s = max(config.timeout_s, config.microvm_timeout_s or 0)
    if config.open_write_alarm_minutes * 60 <= longest_s:
        yield ConfigError(
            "open_write_alarm_minutes",
            config.open_write_alarm_minutes,
            f"would ring for a write of a run that is alive: it may be open for {longest_s} s; give it more",
        )


def _of_managed(config: Config) -> Iterator[ConfigError]:
    """Yield settings that Lambda refuses for Managed Instances, or that say nothing there.

    https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances.html
    """
    if config.memory_mb < _MANAGED_MEMORY_MIN_MB:
        yield ConfigError(
            "memory_mb", config.memory_mb, f"with capacity_provider it is at least {_MANAGED_MEMORY_MIN_MB}"
        )
    if config.network != "none":
        yield ConfigError(
            "network",
            config.network,
            "with capacity_provider runs are in the provider's network, and Lambda refuses another one; leave out one"
            " of the two",
        )
    for key in ("reserved_concurrency", "provisioned_concurrency"):
        if (value := getattr(config, key)) is not None:
            yield ConfigError(
                key,
                value,
                "with capacity_provider the provider says how many environments there are, and they are always ready;"
                " leave this out",
            )
    if config.state_machine and config.timeout_s > _SIZES_MAX["timeout_s"]:
        yield ConfigError(
            "state_machine",
            "true",
            f"Lambda ends a call that waits for its answer after {_SIZES_MAX['timeout_s']} s; give timeout_s at most as"
            " much, or leave this out",
        )


_MICROVM_NAME_MAX: Final = 64
_MICROVM_VARIABLES_MAX: Final = 50
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-microvmimage.html"""
_MICROVM_ARCHITECTURE: Final = "arm64"


def _of_microvm(config: Config) -> Iterator[ConfigError]:
    """Yield settings with which CloudFormation could make no MicroVM image, or whose jobs could not do their work."""
    if config.image_uri is None:
        yield ConfigError(
            "microvm_timeout_s",
            config.microvm_timeout_s,
            "Lambda builds a MicroVM image on top of the function's image, which must be there; set image_uri",
        )
    if config.architecture != _MICROVM_ARCHITECTURE:
        yield ConfigError(
            "architecture",
            config.architecture,
            f"CloudFormation makes MicroVM images for {_MICROVM_ARCHITECTURE} only; set that, with such an image, or"
            " leave out microvm_timeout_s",
        )
    if config.network != "none":
        yield ConfigError(
            "network",
            config.network,
            "a MicroVM reaches a network by a network connector, which the stack does not make; leave out"
            " microvm_timeout_s, or this",
        )
    if config.reuse == "off":
        yield ConfigError(
            "reuse",
            config.reuse,
            "the snapshot of a MicroVM image holds a JVM that waits for its job, and with this none would wait; leave"
            " it out, or microvm_timeout_s",
        )
    if len(config.stack_name) > _MICROVM_NAME_MAX:
        yield ConfigError(
            "stack_name", config.stack_name, f"is the MicroVM image's name, which has {_MICROVM_NAME_MAX} at most"
        )
    if (count := len(microvm_environment(config, Resources.longest(config)))) > _MICROVM_VARIABLES_MAX:
        yield ConfigError(
            "environment",
            f"{count} variables",
            f"a MicroVM image has {_MICROVM_VARIABLES_MAX} at most, the stack's own included",
        )


def _of_provisioned(config: Config) -> Iterator[ConfigError]:
    provisioned, at_once = config.provisioned_concurrency, config.reserved_concurrency
    if provisioned is not None and at_once is not None and provisioned > at_once:
        yield ConfigError(
            "provisioned_concurrency",
            provisioned,
            f"is more than reserved_concurrency={at_once}, and Lambda refuses that; give it at most as many",
        )
    if provisioned is not None and config.reuse == "off":
        yield ConfigError(
            "provisioned_concurrency",
            provisioned,
            "with reuse=off no JVM waits in a sandbox, and a run there starts as slowly as anywhere; leave"
            " reuse out, or this",
        )


def _of_documents(config: Config) -> Iterator[ConfigError]:
    """Yield an error if documents live too short: a failed event could be sent again after its document has expired."""
    execution_days = 0 if config.durable is None else math.ceil(config.durable / timedelta(days=1))
    queues = 2 if config.redrive_attempts > 0 else 1  # the redrive moves messages that it cannot help to a second one
    days = execution_days + queues * FAILURE_QUEUE_DAYS
    if config.checkpoint_days <= days:
        times = "the execution and its failure" if queues == 1 else "a failure in both queues, behind any execution"
        yield ConfigError(
            "checkpoint_days", config.checkpoint_days, f"a document must outlive {times}: give it more than {days}"
        )


def _of_durable(config: Config) -> Iterator[ConfigError]:
    if config.durable is None:
        return
    if config.durable.total_seconds() > _ATTEMPTS_MAX * config.timeout_s:
        yield ConfigError(
            "durable",
            str(config.durable),
            f"Lambda keeps {_ATTEMPTS_MAX} attempts of an execution, here of {config.timeout_s} s each; give it less",
        )
    if config.gradual_deployment is not None:
        yield ConfigError(
            "gradual_deployment",
            config.gradual_deployment,
            "a failed execution is no failed invocation, so CodeDeploy would see none; leave out durable, or this",
        )
    waiting = {"queue": "a queue of SQS", "state_machine": "a task of Step Functions"}
    for key, who in waiting.items():
        if getattr(config, key):
            yield ConfigError(
                key,
                "true",
                f"{who} waits for the whole execution, 15 minutes at most; leave out durable, or this, and let an event"
                " start the execution",
            )
    for key in ("continue_max", "retry_attempts"):
        if getattr(config, key) > 0:
            yield ConfigError(
                key, getattr(config, key), "a durable execution makes its attempts itself; leave out durable, or this"
            )


def _of_network(config: Config) -> Iterator[ConfigError]:
    keys = ("vpc_id", "subnet_ids", "availability_zones", "security_group_ids")
    present = [key for key in keys if getattr(config, key)]
    if config.network == "existing" and (missing := [key for key in keys if key not in present]):
        yield ConfigError("network", config.network, f"needs {', '.join(missing)} too")
    if config.network != "existing" and present:
        yield ConfigError(present[0], getattr(config, present[0]), "is used with network=existing only")
    for key in ("subnet_ids", "security_group_ids"):
        if len(set(getattr(config, key))) != len(getattr(config, key)):
            yield ConfigError(key, ",".join(getattr(config, key)), "names one of them twice")
    if len(config.availability_zones) != len(config.subnet_ids):
        yield ConfigError("availability_zones", ",".join(config.availability_zones), "name one for each of subnet_ids")
