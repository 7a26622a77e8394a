"""Settings that are each valid, but contradict each other."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from infra.config import FAILURE_QUEUE_DAYS
from infra.config_error import ConfigError
from infra.losses import losses, too_large
from infra.overlaps import overlaps
from infra.refusals import refusals
from infra.secrets import regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config import Config

__all__ = ["contradictions"]


_ATTEMPTS_MAX: Final = 1500
"""3,000 operations of an execution, and an attempt with the pause behind it is two.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""


def contradictions(config: Config) -> Iterator[ConfigError]:
    """Find settings that contradict each other, the gravest first."""
    for key in ("schedule", "s3_trigger"):
        if getattr(config, key) is not None and config.entry_point is None:
            yield ConfigError(key, getattr(config, key), "its events name no script; set entry_point to the one to run")
    yield from (ConfigError(*found) for found in overlaps(config))
    if config.image_variant != "slim" and config.image_uri is not None:
        yield ConfigError(
            "image_variant", config.image_variant, "image_uri names an image that is built; leave one out"
        )
    if config.conditional_commits and not config.lake_bucket:
        yield ConfigError("conditional_commits", "true", "is about the lake bucket; set lake_bucket=true")
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


def _of_provisioned(config: Config) -> Iterator[ConfigError]:
    kept, at_once = config.provisioned_concurrency, config.reserved_concurrency
    if kept is not None and at_once is not None and kept > at_once:
        yield ConfigError(
            "provisioned_concurrency",
            kept,
            f"is more than reserved_concurrency={at_once}, and Lambda refuses that; give it at most as many",
        )
    if kept is not None and config.reuse == "off":
        yield ConfigError(
            "provisioned_concurrency",
            kept,
            "with reuse=off no Java machine waits in a sandbox, and a run there starts as slowly as anywhere; leave"
            " reuse out, or this",
        )


def _of_documents(config: Config) -> Iterator[ConfigError]:
    """Find a time of documents in which a failed event can be sent again after its run has been forgotten."""
    execution_days = 0 if config.durable is None else math.ceil(config.durable / timedelta(days=1))
    queues = 2 if config.redrive_attempts > 0 else 1  # the redrive sets aside what it cannot help
    days = execution_days + queues * FAILURE_QUEUE_DAYS
    if config.checkpoint_days <= days:
        what = "the execution and its failure" if queues == 1 else "a failure in both queues, behind any execution"
        yield ConfigError(
            "checkpoint_days", config.checkpoint_days, f"a document must outlive {what}: give it more than {days}"
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
    if config.queue:
        yield ConfigError(
            "queue",
            "true",
            "a queue of SQS waits for the whole execution, 15 minutes at most; leave out durable, or this, and let an"
            " event start the execution",
        )
    for key in ("continue_max", "retry_attempts"):
        if getattr(config, key) > 0:
            yield ConfigError(
                key, getattr(config, key), "a durable execution makes its attempts itself; leave out durable, or this"
            )


def _of_network(config: Config) -> Iterator[ConfigError]:
    keys = ("vpc_id", "subnet_ids", "availability_zones", "security_group_ids")
    given = [key for key in keys if getattr(config, key)]
    if config.network == "existing" and (missing := [key for key in keys if key not in given]):
        yield ConfigError("network", config.network, f"needs {', '.join(missing)} too")
    if config.network != "existing" and given:
        yield ConfigError(given[0], getattr(config, given[0]), "is used with network=existing only")
    for key in ("subnet_ids", "security_group_ids"):
        if len(set(getattr(config, key))) != len(getattr(config, key)):
            yield ConfigError(key, ",".join(getattr(config, key)), "names one of them twice")
    if len(config.availability_zones) != len(config.subnet_ids):
        yield ConfigError("availability_zones", ",".join(config.availability_zones), "name one for each of subnet_ids")
