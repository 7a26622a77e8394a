"""An Iceberg table as its catalog holds it: snapshots, references to them, and commits under requirements."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FOREIGN", "MAIN", "NEW", "Commit", "Snapshot", "Table"]

MAIN = 3
"""The reference that readers see; 0 to 2 are the branches of the attempts."""
NEW = -1
"""The snapshot that a commit adds: it has its id only then."""
FOREIGN = -1


class Snapshot(NamedTuple):
    """A snapshot; its id is its place in the list, from 1, and 0 is none.

    `epoch`: of its mark, 0 for none. `holds`: the staged snapshots that it repeats. `gone`: out of the metadata, while
    what it brought in may still be shown. `deleted`: we have deleted the files that it brought in.
    """

    attempt: int
    epoch: int = 0
    parent: int = 0
    appends: bool = True
    holds: tuple[int, ...] = ()
    gone: bool = False
    deleted: bool = False


class Commit(NamedTuple):
    """A change to a table, all of it or nothing: `requires` and `sets` are pairs of a reference and a snapshot.

    `attempt`: whose branch or snapshot it makes.
    """

    what: str
    requires: tuple[tuple[int, int], ...] = ()
    sets: tuple[tuple[int, int], ...] = ()
    adds: Snapshot | None = None
    forgets: tuple[int, ...] = ()
    creates: bool = False
    attempt: int = FOREIGN


class Table(NamedTuple):
    """A table.

    `dropped`: it was there, and may be registered again. `taken`: others have taken ours out of main. `late`: a
    creation has come after a settler had looked for it.
    `strays`: the attempts of which something has come when nobody could wait for it any more.
    """

    there: bool = True
    snapshots: tuple[Snapshot, ...] = ()
    refs: tuple[int, ...] = (0, 0, 0, 0)
    dropped: bool = False
    taken: bool = False
    late: bool = False
    strays: tuple[int, ...] = ()

    @property
    def main(self) -> int:
        return self.refs[MAIN]

    def at(self, snapshot: int) -> Snapshot:
        """Return a snapshot by its id, one that is gone, too."""
        return self.snapshots[snapshot - 1]

    def line(self, snapshot: int) -> tuple[int, ...]:
        """Return a snapshot and its ancestors, as far as the metadata knows them."""
        found: list[int] = []
        while snapshot and not self.at(snapshot).gone:
            found.append(snapshot)
            snapshot = self.at(snapshot).parent
        return tuple(found)

    def ancestry(self, snapshot: int) -> tuple[int, ...]:
        """Return a snapshot and its ancestors, whatever the metadata has forgotten."""
        found: list[int] = []
        while snapshot:
            found.append(snapshot)
            snapshot = self.at(snapshot).parent
        return tuple(found)

    def shown(self, snapshot: int) -> tuple[int, ...]:
        """Return which of our staged snapshots a reader of one finds."""
        ours = (one for one in self.ancestry(snapshot) if self.at(one).attempt != FOREIGN)
        return tuple(source for one in ours for source in (self.at(one).holds or (one,)))

    def reaches(self, base: int) -> bool:
        """Tell whether main's history is known down to where an attempt began (`base`; 0 or less: from the first)."""
        line = self.line(self.main)
        if not line or base in line or self.at(line[-1]).parent == max(base, 0):
            return True
        return base > 0 and not self.at(base).gone and line[-1] < base  # main was set back behind it

    def fits(self, commit: Commit) -> bool:
        """Tell whether a catalog would make a commit now."""
        if commit.creates or not self.there:
            return commit.creates and not self.there and not self.dropped
        known = all(not self.at(snapshot).gone for _, snapshot in commit.sets if snapshot > 0)
        return known and all(self.refs[ref] == snapshot for ref, snapshot in commit.requires)

    def may_ever_fit(self, commit: Commit) -> bool:
        """Tell whether a commit in the air is worth to be waited for: main may be set back, a branch made late."""
        if commit.creates or not self.there:
            return commit.creates is not self.there
        return self.fits(commit) or all(self._may_be(ref, snapshot) for ref, snapshot in commit.requires)

    def _may_be(self, ref: int, snapshot: int) -> bool:
        if self.refs[ref] == snapshot or snapshot == 0:
            return True
        return snapshot in self.line(self.main) if ref == MAIN else self.at(snapshot).attempt == FOREIGN

    def after(self, commit: Commit) -> Table:
        """Return the table after a commit that fits."""
        snapshots = list(self.snapshots)
        if commit.adds is not None:
            snapshots.append(commit.adds)
        for snapshot in commit.forgets:
            snapshots[snapshot - 1] = snapshots[snapshot - 1]._replace(gone=True)
        refs = list(self.refs)
        for ref, snapshot in commit.sets:
            refs[ref] = len(snapshots) if snapshot == NEW else snapshot
        return self._replace(there=True, snapshots=tuple(snapshots), refs=tuple(refs))

    def without_files(self, doomed: tuple[int, ...]) -> Table:
        """Return the table after the files that snapshots brought in were deleted."""
        return self._replace(
            snapshots=tuple(
                one._replace(deleted=True) if number in doomed else one for number, one in enumerate(self.snapshots, 1)
            )
        )
