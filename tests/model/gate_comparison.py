"""Compares the gate's Java code with its model on one history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore
    from tests.model.gate_world import World

__all__ = ["difference"]

_TIMES: Final = re.compile(r'("lastUpdated"|"atMs"):\d+')
_WORDS: Final = re.compile(r'("reason":"\w+): (?:[^"\\]|\\.)*')


def difference(logstore: LogStore, world: World) -> str:
    """Return the first difference between Java and the model; empty if there is none."""
    answer = logstore.ask("history", steps=world.steps)
    if "error" in answer:
        return "\n".join(answer["error"])
    for number, (step, expected, seen) in enumerate(zip([*world.steps, "the end"], world.seen, answer, strict=True)):
        if _as_told(seen) != expected:
            return f"step {number}, {step}:\n expected {expected}\n and seen {seen}"
    return ""


def _as_told(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the driver's answer without times and the text of refusals, which the model does not have."""
    for block in seen.get("blocks", {}).values():
        block["refusal"] = block["refusal"].partition(": ")[0]
    for call in seen.get("calls", ()):
        call[2:3] = [_TIMES.sub(r"\1:0", text) for text in call[2:3]]
    for kind in {"bodies", "journals"} & seen.keys():
        seen[kind] = {name: _WORDS.sub(r"\1", _TIMES.sub(r"\1:0", text)) for name, text in seen[kind].items()}
    return seen
