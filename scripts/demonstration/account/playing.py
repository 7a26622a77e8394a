"""Play the journey from its start to its end, on an account that it starts and removes, or on that of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.text import Text

from scripts.account.deployment import Deployment
from scripts.account.image import image_of_account
from scripts.account.server import Account, bridge_address, environment
from scripts.demonstration.account import (
    cataloging,
    denying,
    deploying,
    failing,
    killing,
    operating,
    profile,
    triggering,
)
from scripts.demonstration.account.journey import Journey
from scripts.demonstration.account.record import record
from scripts.image.build import TAG, Build, build, choose_base
from scripts.image.command import certificates
from scripts.image.docker import with_docker
from scripts.provision.account import ensure_account, ensure_glue_jars
from scripts.provision.place import ROOT, Place
from soal.console.progress import JobProgress
from soal.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console

    from scripts.demonstration.stage import Claims
    from scripts.image.docker import Docker

_NAME: Final = "account"


@dataclass(frozen=True, slots=True)
class Act:
    """A part of the journey. `job_s`: the seconds that its jobs may take, all in all; `only_here`: why an account that
    is not on this machine has not this part.
    """

    play: Callable[[Journey], None]
    job_s: int = 0
    only_here: str = ""


_LONG_S, _SHORT_S = 900, deploying.SHORT_S
_HELD: Final = "it kills or stops a container by its id, which Lambda tells nobody"
_ACTS: Final = (
    Act(operating.listening, only_here="it serves the alarms' part"),
    Act(denying.denied_and_allowed, only_here="it counts on a right that is gone at once; IAM takes its time"),
    Act(failing.failed_and_redriven, 2 * _LONG_S),
    Act(killing.killed_and_recovered, only_here=_HELD),
    Act(deploying.updated, _LONG_S + _SHORT_S),
    Act(killing.deadline, _SHORT_S),
    Act(killing.killed_and_retried, only_here=_HELD),
    Act(killing.killed_after_the_commit, only_here=_HELD),
    Act(killing.killed_and_swept, only_here=_HELD),
    Act(killing.frozen, only_here=_HELD),
    Act(triggering.object_landed, _SHORT_S),
    Act(triggering.message_sent, _SHORT_S),
    Act(
        triggering.message_redriven,
        only_here="it shows a message again after seconds, while its job may run; else it takes many timeouts",
    ),
    Act(cataloging.in_glue, only_here=f"it needs jars that the image slim has not, and {_HELD}"),
    Act(triggering.two_at_once, 4 * _SHORT_S),
    Act(triggering.scheduled, 8 * _SHORT_S),
    Act(triggering.retried_by_state_machine, 3 * _SHORT_S),
    Act(operating.operated),
    Act(operating.alarmed, only_here="it puts values into AWS's own metrics, which only the emulator takes"),
    Act(deploying.destroyed),
)


def play_on_profile(console: Console, claims: Claims, name: str, image: str | None, *, agreed: bool) -> None:
    """Play what an account of AWS can have, on that of a profile; name what is left out. Raises `Problem`."""

    def begin(journey: Journey) -> None:
        for act in _ACTS:
            if act.only_here:
                journey.line("left out", f"{act.play.__name__}: {act.only_here}")
        journey.act("From a bootstrapped account to the first result")
        deploying.first_result(journey)

    possible = [(act.job_s, act.play) for act in _ACTS if not act.only_here]
    profile.play(console, claims, name, image, [(2 * _LONG_S, begin), *possible], agreed=agreed)


def play(console: Console, claims: Claims, image: str | None, kept: Path | None) -> None:
    """Play all parts, with an image that Docker has, or with that of this tree; write the record of a run that comes to
    its end to the file `kept`. Raises `Problem` if it cannot begin, or go on.
    """
    home = Home.of()
    programs = ensure_account(Place(ROOT))
    with with_docker(home) as docker:
        bridge_address(docker)  # before minutes for the image
        image = image or _built(docker, console)
        with (
            image_of_account(docker, image, home.rie, _NAME, ensure_glue_jars(Place(ROOT))) as name,
            Account(docker, programs) as account,
        ):
            console.print(Text(f"{account.endpoint} is the account, by ministack; log: {account.log}"), soft_wrap=True)
            deployment = Deployment(programs, environment(account.aws), account.folder)
            journey = Journey(console, claims, account, deployment)
            deploying.bootstrapped(journey, name)
            for act in _ACTS:
                act.play(journey)
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
