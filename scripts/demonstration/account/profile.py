"""The account of an AWS profile: its variables, the budget of a journey in it, and the journey, removed at its end."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound
from botocore.session import Session
from rich.text import Text

from scripts.account.client import client_of
from scripts.account.deployment import Deployment
from scripts.account.server import environment
from scripts.demonstration.account.journey import AccountOfProfile, Journey
from scripts.demonstration.account.removal import Removal
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rich.console import Console

    from scripts.demonstration.stage import Claims

_FILES: Final = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
_MINUTE_USD: Final = 0.003
"""A minute with the stack's memory, and below an hour of the rest, at list prices of us-east-1 in November 2026 as
docs/guides/deploying.md#costs has them: 22 alarms, 31 metrics, a dashboard.
"""
_HOUR_USD: Final = (22 * 0.10 + 31 * 0.30 + 3) / 730


def variables(profile: str) -> dict[str, str]:
    """Return the variables of clients and commands that use a profile, its own region and its own endpoint; keys are
    read again by each of them. Raises `Failure`.
    """
    try:
        settings: Mapping[str, Any] = Session(profile=profile).get_scoped_config()
    except ProfileNotFound as error:
        raise Failure(str(error), todo="name one of `aws configure list-profiles`") from error
    region = settings.get("region")
    if not region:
        todo = f"aws configure set region REGION --profile {profile}"
        raise Failure(f"the profile {profile} has no region", todo=todo)
    endpoint, bundle = settings.get("endpoint_url"), settings.get("ca_bundle")
    files = {name: os.environ[name] for name in _FILES if name in os.environ}
    where = {"AWS_ENDPOINT_URL": endpoint} if endpoint else {}
    trust = {"AWS_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": bundle} if bundle else {}
    return {"AWS_PROFILE": profile, "AWS_REGION": region, "AWS_DEFAULT_REGION": region, **files, **where, **trust}


def budget(job_s: Iterable[int]) -> str:
    """Return what the journey makes, and the bound of what it costs, if each job takes all the time that it may."""
    minutes = sum(job_s) / 60
    bound = minutes * _MINUTE_USD + _HOUR_USD
    return (
        f"budget: at most about {bound:.2f} $ ({minutes:.0f} minutes of jobs at {_MINUTE_USD} $, an hour of alarms,"
        " metrics and a dashboard; us-east-1's list prices of November 2026), and cents for requests, logs and storage;"
        " it makes one stack with its buckets, a bucket beside it, and, without --image, an image in the bootstrap's"
        " repository"
    )


def play(
    console: Console,
    claims: Claims,
    profile: str,
    image: str | None,
    acts: Iterable[tuple[int, Callable[[Journey], None]]],
    *,
    agreed: bool,
) -> None:
    """Tell the budget, ask, and play the acts, each with the seconds that its jobs may take; then remove all that this
    run has made, whatever has ended it. Raises `Failure`.
    """
    acts = tuple(acts)
    aws = variables(profile)
    try:
        who = client_of(aws, "sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        raise Failure(f"the profile {profile} cannot be used: {error}", todo="renew its credentials") from error
    begun = parsedate_to_datetime(who["ResponseMetadata"]["HTTPHeaders"]["date"])
    stack, account, region = f"soal-demo-{uuid.uuid4().hex[:12]}", who["Account"], aws["AWS_REGION"]
    said = f"account {account}, {region}, stack {stack}; {budget(seconds for seconds, _ in acts)}"
    console.print(Text(said), soft_wrap=True)
    if not agreed:
        _ask(console)
    programs = ensure_account(Place(ROOT))
    with tempfile.TemporaryDirectory(prefix="soal-journey-") as name:
        folder = Path(name)
        deployment = Deployment(programs, environment(aws), folder, stack, account, region)
        journey = Journey(console, claims, AccountOfProfile(aws, folder), deployment, context={"stack_name": stack})
        if image is not None:
            journey.context["image_uri"] = image
        removal = Removal(journey, begun)
        try:
            for _, act in acts:
                removal.note()
                act(journey)
        finally:
            left = removal.remove()
            for one in left:
                console.print(Text(f"  NOT REMOVED: {one.what}: {one.why}\n    {one.command}"), soft_wrap=True)
        claims.check("all that this run has made in the account is removed", holds=not left)


def _ask(console: Console) -> None:
    """Go on only with a yes of a terminal."""
    if sys.stdin.isatty():
        console.print("Go on? Type yes: ", end="")
        if sys.stdin.readline().strip() == "yes":
            return
    raise Failure("nobody has agreed; nothing was made", todo="add --yes, or answer yes in a terminal")
