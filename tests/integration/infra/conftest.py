"""One account for the tests of this folder, with the stack in it: made, described, asked, and at last removed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.account.client import client_of
from scripts.account.deployment import Deployment, deployer_of, outputs
from scripts.account.server import environment
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from tests.support.account import CONTEXT
from tests.support.account_tables import account_without_docker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scripts.account.server import Account


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run test_account.py last in this folder, whatever was asked for: it changes the stack, and removes it."""
    here = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted((items[place] for place in here), key=lambda item: item.path.name == "test_account.py")
    for place, item in zip(here, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="package")
def account() -> Iterator[Account]:
    """An account on the loopback."""
    with account_without_docker() as account:
        yield account


@pytest.fixture(scope="package")
def deployment(account: Account) -> Deployment:
    """With the stack in it, by somebody who may only assume the roles of the bootstrap."""
    programs = ensure_account(Place(ROOT))
    Deployment(programs, environment(account.aws), account.folder).bootstrap()
    made = Deployment(programs, environment(deployer_of(account.aws)), account.folder)
    made.deploy(CONTEXT)
    return made


@pytest.fixture(scope="package")
def client(account: Account) -> Callable[[str], Any]:
    return partial(client_of, account.aws)


@pytest.fixture(scope="package")
def made(deployment: Deployment, client: Callable[[str], Any]) -> dict[str, str]:
    """The outputs of the stack."""
    return outputs(client("cloudformation"))
