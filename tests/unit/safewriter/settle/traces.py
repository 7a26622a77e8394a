"""Traces of a settler: operations in the log, statuses of the document, files in the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.safewriter.invariants import documents

if TYPE_CHECKING:
    from tests.unit.safewriter.world import World


def operations(world: World) -> list[str]:
    return [info["operation"] for info in world.log.actions("commitInfo")]


def statuses(world: World) -> list[str]:
    return [document["status"] for document in documents(world)]


def data_files(world: World) -> set[str]:
    return {key for key in world.lake.contents() if not key.startswith("_delta_log/")}
