"""Answers that a server may give, or not. tests/integration/safewriter sends the requests to a real one."""

from __future__ import annotations

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table import CommitTableRequest

from safewriter.objects.store import StoreError
from safewriter.tables.iceberg import rest
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.metadata import FenceTag, LiveTable
from safewriter.tables.iceberg.name import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.tables.iceberg.pointer import Pointer

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
MAIN = {"main": {"snapshot-id": 2**60 + 1, "type": "branch"}}
METADATA = {"table-uuid": UUID, "format-version": 9, "of-tomorrow": [2**60 + 1], "refs": MAIN}
FENCE = FenceTag("sw-1", 2**60 + 1, 1000)
MADE = {"metadata": {**METADATA, "refs": {**MAIN, "sw-1": FENCE.tag}}}
HELD = LiveTable(METADATA, None)
GONE = {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}


class Server(ThreadingHTTPServer):
    """A catalog that returns scripted answers; None closes the connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes] | None] = []
        self.asked: list[tuple[str, str, bytes, str | None]] = []
        self.tokens = itertools.count()

    def pointer(self, table: str = "lake.db.t", **properties: str) -> Pointer:
        reached = {"type": "rest", "uri": f"http://127.0.0.1:{self.server_port}", **properties}
        return open_pointer(TableName.parse(table), reached, lambda _: pytest.fail("the server knows the files"))

    def answer(self, *answers: tuple[int, Any] | None) -> None:
        for one in answers:
            body = one and (one[1] if isinstance(one[1], bytes) else json.dumps(one[1]).encode())
            self.answers.append(one and (one[0], body or b""))

    def handle_error(self, *_: Any) -> None:
        """A client that closes the connection is expected."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path.startswith("/v1/config"):
            self.reply(200, b'{"defaults":{},"overrides":{}}')
        else:
            self.scripted(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/login":
            self.reply(
                200, json.dumps({"access_token": str(next(self.server.tokens)), "token_type": "bearer"}).encode()
            )
        else:
            self.scripted(body)

    def scripted(self, body: bytes) -> None:
        self.server.asked.append((self.command, self.path, body, self.headers["Authorization"]))
        answer = self.server.answers.pop(0)
        if answer is not None:
            self.reply(*answer)

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no log."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_what_the_server_loads_is_the_metadata(server: Server) -> None:
    """As it is, known or not; integers are exact."""
    server.answer((200, {"metadata-location": "s3://x", "metadata": METADATA, "config": {}}))
    held = server.pointer().read()
    assert held is not None
    assert held.metadata == METADATA
    assert server.asked == [("GET", "/v1/namespaces/db/tables/t", b"", "Bearer None")]


def test_a_table_that_the_server_does_not_know_is_gone(server: Server) -> None:
    """It is read as None; a fence for it is too late."""
    server.answer((404, GONE), (404, b""))
    assert server.pointer().read() is None
    assert not server.pointer().commit(HELD, FENCE)


@pytest.mark.parametrize("body", [b"<h1>Not Found</h1>", b"", b"[]", {"error": "no"}, {"message": "no route"}])
def test_a_404_that_is_no_catalog_s_says_nothing_of_the_table(server: Server, body: object) -> None:
    """A proxy answers so while the catalog behind it is restarted."""
    server.answer((404, body))
    with pytest.raises(StoreError, match="the catalog answers 404"):
        server.pointer().read()


def test_a_commit_says_what_it_requires(server: Server) -> None:
    """The table, and that there is no such fence; the tag is the one change."""
    server.answer((200, MADE))
    assert server.pointer().commit(HELD, FENCE)
    ((method, path, body, _),) = server.asked
    assert (method, path) == ("POST", "/v1/namespaces/db/tables/t")
    assert json.loads(body) == {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": UUID},
            {"type": "assert-ref-snapshot-id", "ref": "sw-1", "snapshot-id": None},
        ],
        "updates": [
            {
                "action": "set-snapshot-ref",
                "ref-name": "sw-1",
                "type": "tag",
                "snapshot-id": 2**60 + 1,
                "max-ref-age-ms": 1000,
            }
        ],
    }
    identifier = {"namespace": ["db"], "name": "t"}  # pyiceberg sends it always; the specification asks only elsewhere
    known = CommitTableRequest.model_validate({**json.loads(body), "identifier": identifier})
    assert [one.type for one in known.requirements] == ["assert-table-uuid", "assert-ref-snapshot-id"]


def test_names_are_written_as_the_server_wants_them(server: Server) -> None:
    """Special characters of a path are escaped, and a namespace may have several parts."""
    server.answer((404, GONE))
    server.pointer("lake.a b.c?d.t%", prefix="p").read()
    assert server.asked[0][1] == "/v1/p/namespaces/a%20b%1Fc%3Fd/tables/t%25"


def test_a_requirement_that_is_not_met_makes_a_fence_come_too_late(server: Server) -> None:
    """The specification demands a 409."""
    server.answer((409, {"error": {"message": "no", "type": "CommitFailedException", "code": 409}}))
    assert not server.pointer().commit(HELD, FENCE)


@pytest.mark.parametrize("status", [400, 403, 418, 429, 500, 502, 503, 504])
def test_every_other_answer_leaves_it_open(server: Server, status: int) -> None:
    """A gateway's answer does not show what the server behind it has done."""
    server.answer((status, b"the reason"), (status, b"the reason"))
    with pytest.raises(StoreError, match=rf"lake\.db\.t: the catalog answers {status}: the reason"):
        server.pointer().commit(HELD, FENCE)
    with pytest.raises(StoreError, match=rf"lake\.db\.t: the catalog answers {status}: the reason"):
        server.pointer().read()


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"metadata":null}', b"[" * 100_000])
def test_an_answer_that_is_none_leaves_it_open(server: Server, body: bytes) -> None:
    """As above: the outcome is unknown."""
    server.answer((200, body), None)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"fence lake\.db\.t in catalog 'lake'"):
            server.pointer().commit(HELD, FENCE)


@pytest.mark.parametrize("refs", [MAIN, {**MAIN, "sw-1": {"snapshot-id": 5, "type": "tag"}}])
def test_a_server_that_does_not_do_what_it_says_is_not_believed(server: Server, refs: dict[str, Any]) -> None:
    """Nessie answers 200 to a tag and sets none: a write that counts as rolled back could still be published."""
    server.answer((200, {"metadata": {**METADATA, "refs": refs}}))
    with pytest.raises(StoreError, match="does not show the tag"):
        server.pointer().commit(HELD, FENCE)


def test_a_server_that_says_nothing_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settler has other writes to settle."""
    monkeypatch.setattr(rest, "_TIMEOUT_S", (5, 0.05))
    pointer, held = server.pointer(), threading.Event()
    monkeypatch.setattr(Handler, "scripted", lambda *_: held.wait(60))
    with pytest.raises(StoreError, match="Timeout"):
        pointer.commit(HELD, FENCE)
    held.set()


@pytest.mark.parametrize("status", [401, 419])
def test_a_login_that_has_expired_is_made_again(server: Server, status: int) -> None:
    """Once: a warm function holds its catalog for hours, a token lives for one."""
    login = {"credential": "id:secret", "oauth2-server-uri": f"http://127.0.0.1:{server.server_port}/login"}
    server.answer((status, b""), (200, MADE), (status, b""), (status, b""))
    assert server.pointer(**login).commit(HELD, FENCE)
    first, second = server.asked
    assert first[:3] == second[:3]
    assert first[3] != second[3] == f"Bearer {next(server.tokens) - 1}"

    with pytest.raises(StoreError, match=f"answers {status}"):
        server.pointer(**login).commit(HELD, FENCE)
    assert len(server.asked) == 4
