"""The journey from its start to its end, on an account that it starts and removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from scripts.account.deployment import Deployment, jars_of_glue, programs_of_account
from scripts.account.image import image_of_account
from scripts.account.server import Account, environment, gateway
from scripts.demonstration.account import cataloging, denying, deploying, failing, killing, operating, triggering
from scripts.demonstration.account.record import record
from scripts.demonstration.account.stage import Journey
from scripts.image.build import TAG, Build, build, choose_base
from scripts.image.command import certificates
from scripts.image.docker import with_docker
from scripts.provision.place import ROOT, Place
from soal.console.progress import JobProgress
from soal.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from scripts.demonstration.stage import Claims
    from scripts.image.docker import Docker

_NAME: Final = "account"


def play(console: Console, claims: Claims, image: str | None, kept: Path | None) -> None:
    """Play all parts, with an image that Docker has, or with that of this tree; write the record of a run that comes to
    its end to the file `kept`. Raises `Problem` if it cannot begin, or go on.
    """
    home = Home.of()
    programs = programs_of_account()
    with with_docker(home) as docker:
        gateway(docker)  # before minutes for the image
        image = image or _built(docker, console)
        with (
            image_of_account(docker, image, home.rie, _NAME, jars_of_glue()) as name,
            Account(docker, programs) as account,
        ):
            console.print(Text(f"{account.endpoint} is the account, by ministack; log: {account.log}"), soft_wrap=True)
            deployment = Deployment(programs, environment(account.aws), account.folder)
            journey = Journey(console, claims, docker, account, deployment)
            deploying.first_result(journey, name)
            operating.listening(journey)
            denying.denied_and_allowed(journey)
            failing.failed_and_redriven(journey)
            killing.killed_and_recovered(journey)
            deploying.updated(journey)
            killing.deadline(journey)
            killing.killed_and_retried(journey)
            killing.killed_after_the_commit(journey)
            killing.killed_and_swept(journey)
            killing.frozen(journey)
            triggering.object_landed(journey)
            triggering.message_sent(journey)
            cataloging.in_glue(journey)
            triggering.two_at_once(journey)
            triggering.ticked(journey)
            operating.operated(journey)
            operating.alarmed(journey)
            deploying.destroyed(journey)
        claims.check("no container and no file of the account is left", holds=_is_gone(account))
        if kept is not None:
            found = record(journey.acts, claims.entries, docker, programs, image)
            kept.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _built(docker: Docker, console: Console) -> str:
    """Build the image of this tree, as `soal image build` does."""
    base = choose_base(docker, None, Place(ROOT), lambda line: console.print(Text(line)))
    with JobProgress(console, "building the image"):
        build(docker, Build(base, TAG, certificates(None)))
    return TAG


def _is_gone(account: Account) -> bool:
    return not account.containers(with_ended=True) and not account.folder.exists()
