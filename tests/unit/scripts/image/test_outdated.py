from __future__ import annotations

from scripts.image.outdated import packages, read_lock, reasons, updates


def test_a_package_is_told_with_what_holds_it_back() -> None:
    """Nothing, a bound of ours with its reason, or another package."""
    pinned = read_lock("# made\na==1 \\\n    --hash=sha256:00\nB_c==2\nd==3 ; python_version < '4'\ne==9\n")
    newest = {"a": "2", "b-c": "3", "d": "4", "unlocked": "1"}
    found = list(packages(pinned, newest, {"a": "2", "b-c": "2", "d": "3"}, {"b-c": "pyproject.toml: why"}))
    assert [(one.name, one.pinned, one.newest) for one in found] == [
        ("a", "1", "2"),
        ("b-c", "2", "3"),
        ("d", "3", "4"),
    ]
    assert [one.held_by for one in found] == [
        "nothing; scripts/lock --upgrade-package a",
        "pyproject.toml: why",
        "what needs it, at the newest versions that go together",
    ]


def test_a_jar_is_told_with_the_comment_of_the_pom() -> None:
    """Maven breaks lines that are too long for it."""
    said = (
        "[INFO]   g:short .......... 1.0 -> 1.1\n"
        "[INFO]   g:an-artifact-with-a-long-name ...\n"
        "[INFO]                                             2.0 -> 2.1\n"
    )
    found = list(updates(said, {"g:short": "why"}))
    assert [(one.name, one.pinned, one.newest) for one in found] == [
        ("g:short", "1.0", "1.1"),
        ("g:an-artifact-with-a-long-name", "2.0", "2.1"),
    ]
    assert found[0].held_by == "why"
    assert found[1].held_by.startswith("nothing")


def test_the_pom_says_why_for_what_must_match() -> None:
    """The comment before a dependency is its reason."""
    assert "hadoop-client jars inside PySpark" in reasons()["org.apache.hadoop:hadoop-aws"]
