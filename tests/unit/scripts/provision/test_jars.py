"""Set-up fetches the listed jars by Maven, admits them only with the right checksums, and removes stale ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from scripts.provision.jars import LISTS, LOG_STORE_JAR, admit, ensure_jars, read_sums
from scripts.provision.java import Java, Maven
from scripts.provision.place import Place
from soal.console.problem import Failure

FULL = ("aws-json-protocol", "glue", "kms", "sts", "url-connection-client")
BODY = b"the jar that was pinned"
SUM = hashlib.sha256(BODY).hexdigest()


class Repository(Maven):
    """Maven with fake repositories instead of a network."""

    answers: dict[str, bytes]
    calls: int

    def __init__(self, **answers: bytes) -> None:
        object.__setattr__(self, "answers", {f"{name}.jar": body for name, body in answers.items()})
        object.__setattr__(self, "calls", 0)

    def __call__(self) -> Repository:
        return self

    def copy_closure(self, pom: Path, target: Path) -> None:
        assert pom.name == "pom.xml"
        object.__setattr__(self, "calls", self.calls + 1)
        for name, body in self.answers.items():
            (target / name).write_bytes(body)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "image" / "jars"
    folder.mkdir(parents=True)
    (folder / "jars.sha256").write_text(f"{SUM}  one.jar\n{SUM}  two.jar\n")
    return Place(tmp_path)


def jars(place: Place) -> set[str]:
    return {path.name for path in place.jars.iterdir()}


def test_the_listed_jars_are_fetched_and_no_others(place: Place) -> None:
    """Unlisted files that Maven resolves are not admitted."""
    found = ensure_jars(place, Repository(one=BODY, two=BODY, three=BODY))

    assert found.changed
    assert jars(place) == {"one.jar", "two.jar"}


def test_a_second_run_does_not_call_maven(place: Place) -> None:
    """If every jar is present and right, Maven is not called."""
    maven = Repository(one=BODY, two=BODY)
    ensure_jars(place, maven)

    assert not ensure_jars(place, maven).changed
    assert maven.calls == 1


def test_a_corrupted_jar_is_replaced(place: Place) -> None:
    """A changed jar is noticed at the next run, and fetched again."""
    maven = Repository(one=BODY, two=BODY)
    ensure_jars(place, maven)
    (place.jars / "two.jar").write_bytes(BODY + b"!")

    assert ensure_jars(place, maven).changed
    assert (place.jars / "two.jar").read_bytes() == BODY


def test_a_corrupted_download_is_refused_and_removed(place: Place) -> None:
    """A jar that differs from the pinned one fails set-up, and no jar is admitted."""
    with pytest.raises(Failure, match=r"two\.jar: expected") as refused:
        ensure_jars(place, Repository(one=BODY, two=b"another jar"))

    assert not place.jars.exists()
    assert list(place.home.iterdir()) == []
    assert refused.value.todo


def test_a_stale_jar_is_removed(place: Place) -> None:
    """A jar of an earlier list is removed from the class path; the log store's jar stays."""
    maven = Repository(one=BODY, two=BODY)
    ensure_jars(place, maven)
    (place.jars / "old-1.0.jar").write_bytes(BODY)
    (place.jars / LOG_STORE_JAR).write_bytes(BODY)

    assert "old-1.0.jar" in ensure_jars(place, maven).text
    assert jars(place) == {"one.jar", "two.jar", LOG_STORE_JAR}


def test_a_changed_list_is_noticed(place: Place) -> None:
    """If the list names another version, the new jar replaces the old one."""
    ensure_jars(place, Repository(one=BODY, two=BODY))
    (place.root / "image" / "jars" / "jars.sha256").write_text(f"{SUM}  one.jar\n{SUM}  three.jar\n")

    assert ensure_jars(place, Repository(one=BODY, three=BODY)).changed
    assert jars(place) == {"one.jar", "three.jar"}


def test_a_pom_that_does_not_give_a_listed_jar_says_so(place: Place) -> None:
    """If pom.xml and the list disagree, the error names the jar and the command that rewrites the list."""
    with pytest.raises(Failure, match=r"two\.jar") as refused:
        ensure_jars(place, Repository(one=BODY))

    assert "scripts/lock jars" in refused.value.todo


def test_another_list_has_a_folder_of_its_own(place: Place) -> None:
    """Another list has a folder of the same name; the image's jars are left alone."""
    folder = place.root / LISTS["full-jars"]
    folder.mkdir(parents=True)
    (folder / "jars.sha256").write_text(f"{SUM}  three.jar\n")

    assert ensure_jars(place, Repository(one=BODY, three=BODY), "full-jars").text == "1 full-jars, 1 fetched"
    assert [jar.name for jar in place.home.rglob("*.jar")] == ["three.jar"]


def test_the_clients_of_aws_are_of_the_images_own_version() -> None:
    """The AWS clients have the version of the image's SDK, with which they share a class path."""
    image, more = (read_sums(Path(__file__).parents[4] / LISTS[name] / "jars.sha256") for name in ("jars", "full-jars"))
    (version,) = (jar.removeprefix("s3-").removesuffix(".jar") for jar in image if jar[:4] in ("s3-2", "s3-3"))
    clients = {name for name in more if name.endswith(f"-{version}.jar")}
    assert clients == {f"{name}-{version}.jar" for name in FULL}
    assert not more.keys() & image.keys()


def test_nothing_is_admitted_when_one_file_is_wrong(tmp_path: Path) -> None:
    """A folder is admitted whole or not at all, and the wrong file is deleted."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "one.jar").write_bytes(BODY)
    (source / "two.jar").write_bytes(b"x")

    with pytest.raises(Failure):
        admit(source, target, {"one.jar": SUM, "two.jar": SUM})

    assert not target.exists()
    assert [path.name for path in source.iterdir()] == ["one.jar"]


def test_maven_runs_with_the_java_that_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maven gets the found Java by JAVA_HOME, whatever the PATH; the user's options come last and so override."""
    monkeypatch.setenv("MAVEN_OPTS", "-Xmx1g")
    program = tmp_path / "mvn"
    program.write_text('#!/bin/sh\necho "$JAVA_HOME" "$@" "$MAVEN_OPTS" >"${0%/*}/seen"\n')
    program.chmod(0o755)

    Maven(str(program), Java(tmp_path / "java", "17.0.1")).copy_closure(tmp_path / "pom.xml", tmp_path / "out")

    seen = (tmp_path / "seen").read_text()
    assert seen.startswith(f"{tmp_path / 'java'} ")
    assert f"-DoutputDirectory={tmp_path / 'out'}" in seen
    assert seen.endswith(" -Xmx1g\n")
