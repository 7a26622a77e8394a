"""Match artifacts and advisories with our assessments, and find the advisories without one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from univers.version_range import VersionRange
from univers.versions import MavenVersion

from scripts.image.trim import is_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from scripts.advisories.artifacts import Artifact, Coordinates


@dataclass(frozen=True, slots=True)
class Advisory:
    """An advisory about a package. `fixed` is the first fixed version, or an empty string."""

    id: str
    aliases: tuple[str, ...]
    package: str
    fixed: str
    summary: str = ""

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.id, *self.aliases))

    def __str__(self) -> str:
        return f"{self.id} ({', '.join(self.aliases)})" if self.aliases else self.id


def _maven(text: str) -> str:
    if not text.startswith("vers:maven/"):
        raise ValueError(f"{text!r} is not of the form vers:maven/>=1|<2")
    _range(text)
    return text


def _range(text: str) -> VersionRange:
    return VersionRange.from_string(text)  # type: ignore[no-untyped-call, no-any-return] # univers types little


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[tuple[_Text, ...], Field(strict=False)]


class Listed(_Model):
    """An advisory in our list. `affected` is a range of versions in `vers` notation."""

    id: _Text
    aliases: _Texts = ()
    package: _Text
    affected: Annotated[_Text, AfterValidator(_maven)]
    fixed: str

    def is_about(self, artifact: Coordinates) -> bool:
        """Return whether the artifact is an affected version of the package."""
        return artifact.package == self.package and MavenVersion(artifact.version) in _range(self.affected)

    @property
    def advisory(self) -> Advisory:
        return Advisory(self.id, self.aliases, self.package, self.fixed)


class Assessment(_Model):
    """What advisories mean for the product, in the examined jars.

    `removed_by` is the line of image/jars/unwanted.txt that removes the vulnerable code from the image, if one does.
    """

    verdict: Literal["affected", "not affected"]
    why: _Text
    jars: Annotated[_Texts, Field(min_length=1)]
    removed_by: str | None = None
    advisories: Annotated[tuple[Listed, ...], Field(min_length=1, strict=False)]

    def covers(self, jar: str, advisory: Advisory) -> bool:
        return any(is_of(jar, pattern) for pattern in self.jars) and any(
            row.package == advisory.package and row.advisory.names & advisory.names for row in self.advisories
        )


class Known(_Model):
    """The list of assessments."""

    assessments: Annotated[tuple[Assessment, ...], Field(strict=False)]

    @property
    def rows(self) -> tuple[Listed, ...]:
        return tuple(row for assessment in self.assessments for row in assessment.advisories)

    def advisories(self, artifacts: Iterable[Coordinates]) -> dict[Coordinates, tuple[Advisory, ...]]:
        """Return the listed advisories about each of the artifacts."""
        rows = self.rows
        matches = {artifact: tuple(row.advisory for row in rows if row.is_about(artifact)) for artifact in artifacts}
        return {artifact: advisories for artifact, advisories in matches.items() if advisories}


@dataclass(frozen=True, slots=True)
class Exposure:
    """An advisory about an artifact in a jar."""

    artifact: Artifact
    advisory: Advisory


@dataclass(frozen=True, slots=True)
class Verdicts:
    """`unassessed` fail the audit; `assessed` are shown with the reason; `idle` rows match no artifact."""

    unassessed: tuple[Exposure, ...]
    assessed: tuple[tuple[Assessment, tuple[Exposure, ...]], ...]
    idle: tuple[Advisory, ...]


def read_known(path: Path) -> Known:
    """Read the list. Raises `ValueError` if it is malformed."""
    with path.open("rb") as file:
        return Known.model_validate(tomllib.load(file))


def judge(artifacts: Sequence[Artifact], answers: Mapping[Coordinates, Sequence[Advisory]], known: Known) -> Verdicts:
    """Match the database's advisories with our assessments."""
    unassessed: list[Exposure] = []
    assessed: dict[int, list[Exposure]] = {}
    for artifact in artifacts:
        for advisory in answers.get(artifact.coordinates, ()):
            exposure = Exposure(artifact, advisory)
            rows = (row for row, entry in enumerate(known.assessments) if entry.covers(artifact.jar, advisory))
            if (row := next(rows, None)) is None:
                unassessed.append(exposure)
            else:
                assessed.setdefault(row, []).append(exposure)
    coordinates = {artifact.coordinates for artifact in artifacts}
    idle = [row.advisory for row in known.rows if not any(row.is_about(artifact) for artifact in coordinates)]
    pairs = tuple((known.assessments[row], tuple(exposures)) for row, exposures in sorted(assessed.items()))
    return Verdicts(tuple(unassessed), pairs, tuple(idle))
