"""The audit's client of OSV asks for all artifacts at once, reads every page, and takes no bad answer for none."""

from __future__ import annotations

import socket

import pytest

from scripts.advisories.artifacts import Coordinates
from scripts.advisories.osv import Osv, OsvError
from tests.support.osv import FakeOsv, serve, vulnerability

NETTY = Coordinates("io.netty", "netty-handler", "4.2.7.Final")
GUAVA = Coordinates("com.google.guava", "guava", "33.4.8-jre")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def ask(fake: FakeOsv, *artifacts: Coordinates) -> dict[Coordinates, list[tuple[str, str]]]:
    """Return the IDs and fixed versions of the database's advisories."""
    with serve(fake) as url, Osv(url, pause_s=0) as osv:
        found = osv.advisories(artifacts)
    return {artifact: [(one.id, one.fixed) for one in advisories] for artifact, advisories in found.items()}


def test_all_artifacts_are_asked_about_in_one_request() -> None:
    """Answers match questions by position; an artifact without advisories is not in the result."""
    fake = FakeOsv(
        pages={NETTY.purl: [["GHSA-aaaa-aaaa-aaaa"]]},
        told={
            "GHSA-aaaa-aaaa-aaaa": vulnerability("GHSA-aaaa-aaaa-aaaa", NETTY.package, "4.1.135.Final", "4.2.15.Final")
        },
    )
    assert ask(fake, GUAVA, NETTY) == {NETTY: [("GHSA-aaaa-aaaa-aaaa", "4.2.15.Final")]}
    purls = ["pkg:maven/com.google.guava/guava@33.4.8-jre", "pkg:maven/io.netty/netty-handler@4.2.7.Final"]
    assert fake.requests == [
        ("/v1/querybatch", {"queries": [{"package": {"purl": purl}} for purl in purls]}),
        ("/v1/vulns/GHSA-aaaa-aaaa-aaaa", None),
    ]


def test_every_page_is_read() -> None:
    """For an artifact with many advisories, only that artifact is requested again, with the page token."""
    names = [f"GHSA-aaaa-aaaa-aaa{number}" for number in range(3)]
    fake = FakeOsv(
        pages={NETTY.purl: [[name] for name in names], GUAVA.purl: [names[:1]]},
        told={name: vulnerability(name, NETTY.package) for name in names},
    )
    assert ask(fake, GUAVA, NETTY) == {GUAVA: [(names[0], "")], NETTY: [(name, "") for name in names]}
    assert [len(body["queries"]) for path, body in fake.requests if path == "/v1/querybatch"] == [2, 1, 1]
    assert fake.requests[1][1]["queries"][0]["page_token"] == "1"


def test_a_withdrawn_advisory_counts_for_nothing() -> None:
    """A withdrawn advisory was a mistake, and is left out."""
    gone = vulnerability("GHSA-aaaa-aaaa-aaaa", NETTY.package, withdrawn="2026-05-08T00:00:00Z")
    fake = FakeOsv(pages={NETTY.purl: [["GHSA-aaaa-aaaa-aaaa"]]}, told={"GHSA-aaaa-aaaa-aaaa": gone})
    assert ask(fake, NETTY) == {NETTY: []}


def test_a_fix_of_another_package_or_of_the_past_is_none() -> None:
    """The fix is the next higher version of the same package."""
    told = vulnerability("GHSA-aaaa-aaaa-aaaa", NETTY.package, "4.1.99.Final", "4.2.20.Final", "4.2.10.Final")
    told["affected"] += vulnerability("x", "io.netty:netty-codec", "4.2.8.Final")["affected"]
    fake = FakeOsv(pages={NETTY.purl: [["GHSA-aaaa-aaaa-aaaa"]]}, told={"GHSA-aaaa-aaaa-aaaa": told})
    assert ask(fake, NETTY) == {NETTY: [("GHSA-aaaa-aaaa-aaaa", "4.2.10.Final")]}


def test_a_passing_fault_is_asked_again() -> None:
    """A request that fails for a moment is retried three times."""
    fake = FakeOsv(faults=[503, 429, 500])
    assert ask(fake, NETTY) == {}
    assert len(fake.requests) == 4


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        (FakeOsv(faults=[503] * 9), "status 503"),
        (FakeOsv(faults=[403]), "status 403"),
        (FakeOsv(raw=b"<html>Sign in</html>"), "not of the published form"),
        (FakeOsv(raw=b'{"vulns": []}'), "not of the published form"),
        (FakeOsv(raw=b'{"results": []}'), "answered 1 questions with 0 results"),
        (FakeOsv(raw=b'{"results": [{"next_page_token": "again"}]}'), "more than 20 pages"),
        (FakeOsv(pages={NETTY.purl: [["GHSA-aaaa-aaaa-aaaa"]]}), "GHSA-aaaa-aaaa-aaaa: status 404"),
    ],
)
def test_an_answer_that_is_none_is_an_error(fake: FakeOsv, said: str) -> None:
    """A malformed answer is an error, never `no advisories`; the number of requests is bounded."""
    with pytest.raises(OsvError, match=said):
        ask(fake, NETTY)
    assert len(fake.requests) <= 20


def test_a_service_that_is_not_there_is_an_error() -> None:
    """If the service cannot be reached, the error names its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Osv(f"http://127.0.0.1:{port}", pause_s=0) as osv, pytest.raises(OsvError, match=rf"127\.0\.0\.1:{port}"):
        osv.advisories([NETTY])
