"""The journey from its start to its end, on an account that it starts and removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from scripts.account.deployment import Deployment
from scripts.account.image import image_of_account
from scripts.account.server import Account
from scripts.demonstration.account import deploying
from scripts.demonstration.account.stage import Journey
from scripts.image.docker import with_docker
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from scripts.provision.steps import SetupError
from soal.console.problem import EXIT_FAILED, Problem
from soal.home import Home

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.demonstration.stage import Claims

_MEMORY_MB: Final = 3008
_TAG: Final = "account"


def play(console: Console, claims: Claims, image: str) -> None:
    """Play all parts with an image that Docker has. Raises `Problem` if that cannot begin, or go on."""
    home = Home.of()
    try:
        programs = ensure_account(Place(ROOT))
    except SetupError as error:
        raise Problem(error.args[0], todo=error.todo, exit_code=EXIT_FAILED) from error
    with with_docker(home) as docker:
        with (
            image_of_account(docker, image, home.rie, _TAG) as name,
            Account(docker, programs, memory_mb=_MEMORY_MB) as account,
        ):
            console.print(Text(f"{account.endpoint} is the account, by ministack; log: {account.log}"), soft_wrap=True)
            deployment = Deployment(programs, account.variables, account.folder)
            journey = Journey(console, claims, docker, account, deployment)
            deploying.first_result(journey, name)
            deploying.destroyed(journey)
        claims.check("no container and no file of the account is left", holds=_is_gone(account))


def _is_gone(account: Account) -> bool:
    return not account.containers(with_ended=True) and not account.folder.exists()
