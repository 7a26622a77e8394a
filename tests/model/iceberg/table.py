"""An Iceberg table in a REST catalog: the catalog checks only the requirements that a commit names."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FOREIGN", "Commit", "Snapshot", "Table"]

FOREIGN = -1


class Snapshot(NamedTuple):
    """The snapshot of one commit. Its id is its position in the list, from 1; 0 is none.

    `gone`: it is expired. `attempt`, `epoch`: from its summary.
    """

    attempt: int = FOREIGN
    parent: int = 0
    gone: bool = False
    epoch: int = 0


class Commit(NamedTuple):
    """An atomic change to a table.

    It requires `main` at this snapshot, and no fence of the name `absent`; -1 requires nothing. `mark`: the name and
    epoch of the mark that it adds. `fence`: the name of the fence that it adds. `unseen`: it applies several statements
    to a table state that they have not read.
    """

    what: str
    main: int = -1
    absent: int = -1
    adds: Snapshot | None = None
    mark: tuple[int, int] | None = None
    fence: int = -1
    unseen: bool = False


class Table(NamedTuple):
    """A table. `there`: it is in its catalog; a dropped one may be registered again.

    `marks`: (name, epoch) each; `fences`: names. `age`: of the first attempt, 1 after six days, 2 after seven. `taken`:
    others have taken our snapshot out of main.
    """

    there: bool = True
    snapshots: tuple[Snapshot, ...] = ()
    main: int = 0
    marks: frozenset[tuple[int, int]] = frozenset()
    fences: frozenset[int] = frozenset()
    age: int = 0
    taken: bool = False

    def at(self, snapshot: int) -> Snapshot:
        """Return a snapshot by its id, also an expired one."""
        return self.snapshots[snapshot - 1]

    def line(self, snapshot: int) -> tuple[int, ...]:
        """Return a snapshot and its ancestors, expired ones included."""
        return (snapshot, *self.line(self.at(snapshot).parent)) if snapshot else ()

    def shown(self) -> tuple[int, ...]:
        """Return the attempts whose rows a reader finds, once for each copy."""
        return tuple(self.at(one).attempt for one in self.line(self.main) if self.at(one).attempt != FOREIGN)

    def fits(self, commit: Commit) -> bool:
        """Return whether the catalog would accept a commit now."""
        return self.there and commit.main in (-1, self.main) and commit.absent not in self.fences

    def may_ever_fit(self, commit: Commit, *, settable: bool) -> bool:
        """Return whether a commit in the air may ever be accepted; `settable`: others may set main back."""
        main = commit.main in (-1, self.main) or (settable and commit.main > 0 and not self.at(commit.main).gone)
        return main and commit.absent not in self.fences

    def after(self, commit: Commit) -> tuple[Table, str]:
        """Return the table after a commit that fits, and the promise that the commit breaks, or ""."""
        marks = self.marks if commit.mark is None else self.marks | {commit.mark}
        fences = self.fences if commit.fence < 0 else self.fences | {commit.fence}
        after = self._replace(marks=marks, fences=fences)
        if commit.adds is not None:
            after = after._replace(snapshots=(*self.snapshots, commit.adds), main=len(self.snapshots) + 1)
        lost = set(self.line(self.main)) - set(after.line(after.main))
        if any(self.at(one).attempt == FOREIGN for one in lost):
            return after, "a commit of somebody else is lost"
        return after, "several statements are applied to a table that they have not seen" if commit.unseen else ""
