"""One history, played by the Java of the gate and by its model."""

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
    """Return where Java first sees something else than the model; nothing if it never does."""
    answer = logstore.ask("history", steps=world.steps)
    if "error" in answer:
        return "\n".join(answer["error"])
    for number, (step, expected, seen) in enumerate(zip([*world.steps, "the end"], world.seen, answer, strict=True)):
        if _as_told(seen) != expected:
            return f"step {number}, {step}:\n expected {expected}\n and seen {seen}"
    return ""


def _as_told(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what the driver says without what no two runs have in common: times, and the words of a refusal."""
    for block in seen.get("blocks", {}).values():
        block["refusal"] = block["refusal"].partition(": ")[0]
    for call in seen.get("calls", ()):
        call[2:3] = [_TIMES.sub(r"\1:0", text) for text in call[2:3]]
    for kind in {"bodies", "journals"} & seen.keys():
        seen[kind] = {name: _WORDS.sub(r"\1", _TIMES.sub(r"\1:0", text)) for name, text in seen[kind].items()}
    return seen
