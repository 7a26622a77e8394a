"""A script of the tier: what it does, what it means to leave in its table, and which of its attempts must succeed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.wrong.rows import BASE, BATCH, MERGED, Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.lab.campaign.wrong.job import WrongJob
    from tests.lab.experiment.plan import Format

__all__ = ["BASE", "BATCH", "BOTH", "ICEBERG", "MERGED", "Ids", "Script", "declared", "script"]

BOTH: Final[tuple[Format, ...]] = ("delta", "iceberg")
ICEBERG: Final[tuple[Format, ...]] = ("iceberg",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One script on a table of one format.

    `before` and `after`: the ids in the table before the run, and when all that it means has landed. `parts`: what the
    table may hold besides, behind an error: the whole blocks that have landed, or what a statement has left that nobody
    can take back. `others`: the same of other Delta tables after a success, by name.

    `is_foreign`: another job has staged the rows before the run, so its verdicts say nothing of them.

    `attempts`: how many the run has. `succeeds`: those that must succeed, counted from 1. `prepare` makes the table, if
    it is none with the one column `id`. `between`: what happens to the run before its second attempt. `is_mended`: the
    owner has changed the script by then.
    """

    family: str
    table_format: Format
    run: Callable[[WrongJob], None]
    before: Ids = BASE
    after: Ids = (*BASE, *BATCH)
    parts: tuple[Ids, ...] = ()
    others: Mapping[str, Ids] = field(default_factory=dict)
    is_foreign: bool = False
    attempts: int = 2
    succeeds: tuple[int, ...] = ()
    prepare: Callable[[WrongJob], None] | None = None
    between: Callable[[WrongJob], None] | None = None
    is_mended: bool = False
    is_short: bool = False

    @property
    def name(self) -> str:
        """By it the script is known as done, and replayed."""
        return f"{self.table_format}-{self.family}-{self.run.__name__.replace('_', '-')}"

    @property
    def mistake(self) -> str:
        """What it does wrong, in a sentence."""
        return str(self.run.__doc__)


_DECLARED: Final[list[Script]] = []


def script(
    *,
    formats: Iterable[Format] = ("delta",),
    before: Ids = BASE,
    after: Ids | None = None,
    parts: tuple[Ids, ...] = (),
    others: Mapping[str, Ids] | None = None,
    is_foreign: bool = False,
    attempts: int = 2,
    succeeds: tuple[int, ...] = (),
    prepare: Callable[[WrongJob], None] | None = None,
    between: Callable[[WrongJob], None] | None = None,
    is_mended: bool = False,
    short: Iterable[Format] = (),
) -> Callable[[Callable[[WrongJob], None]], Callable[[WrongJob], None]]:
    """Declare a function as a script of the family that its module is, on tables of some formats.

    Without `after` it means to append `BATCH`. `short`: the formats on which `scripts/test` runs it.
    """

    def declare(run: Callable[[WrongJob], None]) -> Callable[[WrongJob], None]:
        _DECLARED.extend(
            Script(
                family=run.__module__.rpartition(".")[2].replace("_", "-"),
                table_format=table_format,
                run=run,
                before=before,
                after=(*before, *BATCH) if after is None else tuple(sorted(after)),
                parts=tuple(tuple(sorted(part)) for part in parts),
                others=others or {},
                is_foreign=is_foreign,
                attempts=attempts,
                succeeds=succeeds,
                prepare=prepare,
                between=between,
                is_mended=is_mended,
                is_short=table_format in short,
            )
            for table_format in formats
        )
        return run

    return declare


def declared() -> tuple[Script, ...]:
    """Return all scripts whose modules are imported."""
    return tuple(_DECLARED)
