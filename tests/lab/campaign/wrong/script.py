"""A script of the tier: its function, the rows that its table should hold, and the attempts that must succeed."""

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

    `before` and `after`: the ids in the table before the run, and after all its rows have landed. `parts`: what the
    table may hold instead after an error: the whole blocks that have landed, or what a statement has left that cannot
    be undone. `others`: the ids in other Delta tables after a success, by name.

    `is_foreign`: another job has staged the rows before the run, so its verdicts do not cover them.

    `attempts`: their number. `succeeds`: those that must succeed, counted from 1. `prepare` makes the table, if it has
    other columns than `id`. `between` is called before each later attempt. `is_mended`: the owner has changed the
    script by then.
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
        """Stable name, used to resume and replay."""
        return f"{self.table_format}-{self.family}-{self.run.__name__.replace('_', '-')}"

    @property
    def mistake(self) -> str:
        """The script's mistake, in a sentence."""
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
    """Declare a function as a script of its module's family, on tables of these formats.

    Without `after` it appends `BATCH`. `short`: the formats on which `scripts/test` runs it.
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
    """Return all scripts of the imported modules."""
    return tuple(_DECLARED)
