"""The vulnerability database OSV, over HTTP: the advisories that name an artifact, and their content.

API: https://google.github.io/osv.dev/api/. Schema of an advisory: https://ossf.github.io/osv-schema/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, TypeVar

import requests
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from requests.adapters import HTTPAdapter
from univers.versions import MavenVersion
from urllib3.util import Retry

from scripts.advisories.judge import Advisory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from scripts.advisories.artifacts import Coordinates

SERVICE: Final = "https://api.osv.dev"
_TIMEOUT_S: Final = (10, 60)  # to connect, and between two packets of an answer
_RETRIES: Final = 3
_BATCH: Final = 1000  # the service's own limit
_PAGES: Final = 20
_ECOSYSTEM: Final = "Maven"


_M = TypeVar("_M", bound=BaseModel)


class OsvError(Exception):
    """The database did not answer, or its answer is not valid."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Query(_Model):
    id: str


class _Result(_Model):
    vulns: tuple[_Query, ...] = ()
    next_page_token: str = ""


class _Results(_Model):
    results: tuple[_Result, ...]


class _Package(_Model):
    ecosystem: str
    name: str


class _Event(_Model):
    fixed: str | None = None


class _Range(_Model):
    events: tuple[_Event, ...]


class _Affected(_Model):
    package: _Package | None = None
    ranges: tuple[_Range, ...] = ()


class _Vulnerability(_Model):
    id: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    withdrawn: AwareDatetime | None = None
    affected: tuple[_Affected, ...] = ()

    def fixed(self, artifact: Coordinates) -> str:
        """Return the next unaffected version of an artifact, or an empty string."""
        versions = {
            event.fixed
            for entry in self.affected
            if entry.package and (entry.package.ecosystem, entry.package.name) == (_ECOSYSTEM, artifact.package)
            for span in entry.ranges
            for event in span.events
            if event.fixed
        }
        later = sorted(version for version in map(MavenVersion, versions) if version > MavenVersion(artifact.version))
        return str(later[0].string) if later else ""


class Osv:
    """A client of the database. `pause_s` is the wait before the first retry; each further retry doubles it."""

    def __init__(self, service: str = SERVICE, *, pause_s: float = 1) -> None:
        self._service = service.rstrip("/")
        self._session = requests.Session()
        retry = Retry(
            total=_RETRIES,
            backoff_factor=pause_s,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,  # requests change nothing, so that a POST can be retried, too
            respect_retry_after_header=False,  # the server may ask for hours
            raise_on_status=False,
        )
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.close()

    def advisories(self, artifacts: Sequence[Coordinates]) -> dict[Coordinates, tuple[Advisory, ...]]:
        """Return the advisories of each artifact that has any, without withdrawn ones. Raises `OsvError`."""
        ids: dict[Coordinates, set[str]] = {}
        for start in range(0, len(artifacts), _BATCH):
            for artifact, name in self._names(artifacts[start : start + _BATCH]):
                ids.setdefault(artifact, set()).add(name)
        vulnerabilities = {name: self._vulnerability(name) for name in sorted(set().union(*ids.values()))}
        return {
            artifact: tuple(
                Advisory(entry.id, entry.aliases, artifact.package, entry.fixed(artifact), entry.summary)
                for entry in (vulnerabilities[name] for name in sorted(names))
                if entry.withdrawn is None
            )
            for artifact, names in ids.items()
        }

    def _names(self, artifacts: Sequence[Coordinates]) -> Iterator[tuple[Coordinates, str]]:
        """Yield each artifact with the IDs of its advisories, which may be on several pages."""
        queue = [(artifact, "") for artifact in artifacts]
        for _ in range(_PAGES):
            queries = [
                {"package": {"purl": artifact.purl}, **({"page_token": token} if token else {})}
                for artifact, token in queue
            ]
            results = self._ask("POST", "/v1/querybatch", _Results, {"queries": queries}).results
            if len(results) != len(queue):
                raise OsvError(f"{self._service} answered {len(queue)} questions with {len(results)} results")
            for (artifact, _token), result in zip(queue, results, strict=True):
                yield from ((artifact, entry.id) for entry in result.vulns)
            pairs = zip(queue, results, strict=True)
            queue = [(artifact, result.next_page_token) for (artifact, _), result in pairs if result.next_page_token]
            if not queue:
                return
        raise OsvError(f"{self._service} has more than {_PAGES} pages of advisories for {queue[0][0]}")

    def _vulnerability(self, name: str) -> _Vulnerability:
        return self._ask("GET", f"/v1/vulns/{name}", _Vulnerability)

    def _ask(self, method: str, path: str, model: type[_M], body: object = None) -> _M:
        url = self._service + path
        try:
            answer = self._session.request(method, url, json=body, timeout=_TIMEOUT_S)
            if answer.status_code != requests.codes.ok:
                raise OsvError(f"{method} {url}: status {answer.status_code}, {answer.text[:200]!r}")
            return model.model_validate_json(answer.content)
        except requests.RequestException as error:
            raise OsvError(f"{method} {url}: {error}") from error
        except ValidationError as error:
            raise OsvError(f"{method} {url}: the answer is not of the published form: {error}") from error
