"""A `zookeeper://` URI opens a lock service with its hosts and path, or is refused, without a request."""

from __future__ import annotations

import sys

import pytest

from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
from safewriter.errors import SettingError


@pytest.mark.parametrize(
    ("uri", "hosts", "path"),
    [
        ("zookeeper://zk:2181/locks", "zk:2181", "/locks/events"),
        ("zookeeper://a.b:1,c-d:2,[::1]:3/soal/the.locks", "a.b:1,c-d:2,[::1]:3", "/soal/the.locks/events"),
    ],
)
def test_a_zookeeper_uri_names_hosts_and_a_path(uri: str, hosts: str, path: str) -> None:
    """`zookeeper://host:port[,host:port]/path` opens locks below that path, without a request."""
    backend = open_backend(uri, lease_s=7)
    assert isinstance(backend, ZooKeeperBackend)
    assert (backend._hosts, backend._path("events")) == (hosts, path)
    assert backend._session._client._session_timeout == 7000


@pytest.mark.parametrize("rest", ["", "zk", "zk:2181", "zk:2181/", "zk/locks", "zk:1,/locks", "zk:1/a//b", "zk:1/../b"])
def test_another_zookeeper_uri_is_refused(rest: str) -> None:
    """A URI without hosts, ports or a path, or with an invalid path, is refused."""
    with pytest.raises(SettingError, match=r"job\.coordinator\.backend"):
        open_backend(f"zookeeper://{rest}")


@pytest.mark.parametrize("path", ["zookeeper", "zookeeper/locks"])
def test_the_path_of_zookeeper_itself_is_refused(path: str) -> None:
    """Locks cannot be below ZooKeeper's own znodes."""
    with pytest.raises(SettingError):
        open_backend(f"zookeeper://zk:2181/{path}")


def test_without_kazoo_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without kazoo, the error names the extra to install."""
    for name in [name for name in sys.modules if name.startswith("safewriter.coordination.backends.zookeeper")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    for name in [name for name in sys.modules if name.startswith("kazoo.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SettingError, match=r"install soal\[zookeeper\]"):
        open_backend("zookeeper://zk:2181/locks")
