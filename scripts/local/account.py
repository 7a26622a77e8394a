"""An account in the background: `soal local up --account`. Whoever reads its variables is its administrator."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from scripts.account.deployment import Deployment
from scripts.account.server import environment
from scripts.local.detached import alone, end, start
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from soal.console.problem import Problem
from soal.console.view import View
from soal.local.state import Background, write_private

if TYPE_CHECKING:
    from scripts.provision.account import Programs
    from soal.home import Home

_START_TIMEOUT_S: Final = 400.0
"""The first time a layer of the image is made."""
_END_TIMEOUT_S: Final = 120.0
_CALLERS: Final = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")


class LocalAccount(Background):
    """A running account. `image_uri` is its name for the function's image, `aws` are the variables of a client."""

    image_uri: str
    aws: dict[str, str]


def state_of(home: Home) -> Path:
    """Return the path of the account's state file."""
    return home.path / "account.json"


def variables_of(home: Home) -> Path:
    """Return the path of the file that a shell reads."""
    return home.path / "account.env"


def running(home: Home) -> LocalAccount | None:
    """Return the account that runs, if one does."""
    return LocalAccount.running(state_of(home))


def ensure_up(home: Home, image: str) -> tuple[LocalAccount, bool]:
    """Return the account, and whether it was started, and bootstrapped, now. Raises `Problem` if it cannot be."""
    programs = ensure_account(Place(ROOT))
    with alone(home):
        state, is_new = start(
            LocalAccount,
            state_of(home),
            home.log.with_name("account.log"),
            ["--account", image],
            name="the account",
            todo="docker must answer, and have the image (soal image build)",
            timeout_s=_START_TIMEOUT_S,
        )
        if not is_new:
            return state, False
        try:
            with tempfile.TemporaryDirectory(prefix="soal-cdk-") as folder:
                Deployment(programs, environment(state.aws), Path(folder)).bootstrap()
        except Problem:
            _end(home, state)
            raise
        write_private(variables_of(home), shell(state, programs))
        return state, True


def ensure_down(home: Home) -> LocalAccount | None:
    """End the account and all that runs in it; return its state, None if it did not run."""
    with alone(home):
        state = running(home)
        _end(home, state)
        return state


def _end(home: Home, state: LocalAccount | None) -> None:
    end(state, timeout_s=_END_TIMEOUT_S)
    for path in (state_of(home), variables_of(home)):
        path.unlink(missing_ok=True)


def shell(state: LocalAccount, programs: Programs) -> str:
    """Return what a shell has to do to talk to the account, and to have its `cdk`."""
    own = {**state.aws, "IMAGE_URI": state.image_uri}
    path = ":".join([str(Path(programs.cdk[-1]).parents[2] / ".bin"), '"$PATH"', str(programs.path)])
    lines = [f"unset {' '.join(_CALLERS)}", *(f"export {name}={shlex.quote(value)}" for name, value in own.items())]
    return "\n".join([*lines, f"export PATH={path}", ""])


def account_view(state: LocalAccount, home: Home) -> View:
    """Show where the account is, and how a shell reaches it."""
    document = {"running": True, "pid": state.pid, "endpoint": state.endpoint, "imageUri": state.image_uri}
    how = (
        f"variables: . {variables_of(home)}",
        "deploy: cdk deploy -c lake_bucket=true -c image_uri=$IMAGE_URI",
    )
    line = Text.assemble("account: ", (state.endpoint, "bold"), f" (process {state.pid})")
    return View({**document, "variables": str(variables_of(home))}, (line, *how))
