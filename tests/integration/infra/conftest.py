"""One account for the tests of this folder, with the stack in it: made, described, asked, and at last removed."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from scripts.account.client import client_of
from scripts.account.deployment import Deployment, deployer_of, outputs
from scripts.account.server import Account, environment
from scripts.image.docker import Docker
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from tests.support.account import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run test_account.py last in this folder, whatever was asked for: it changes the stack, and removes it."""
    here = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted((items[place] for place in here), key=lambda item: item.path.name == "test_account.py")
    for place, item in zip(here, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="package")
def account() -> Iterator[Account]:
    """An account without Docker, on the loopback."""
    docker = MagicMock(spec=Docker, program="true", environment=dict(os.environ))
    docker.read.return_value = '{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}\n'
    with Account(docker, ensure_account(Place(ROOT)), memory_mb=512) as account:
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
