"""The steps of scripts/setup: Python, Java, jars, log store, emulator, archive; in parallel where possible."""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, get_args

from handler.spark.archive import archive_of
from handler.spark.missing_dependencies import SLIM, Variant
from scripts.provision.archive import ensure_archive
from scripts.provision.jars import LISTS, ensure_jars
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.logstore import ensure_logstore
from scripts.provision.place import ROOT, Place
from scripts.provision.python_env import FULL, ensure_packages, ensure_spark, link_jars, mark_complete
from scripts.provision.rie import ensure_rie
from scripts.provision.steps import Found, say, side_by_side
from scripts.provision.system import install
from soal.console.problem import Failure
from soal.home import home_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scripts.provision.java import Java, Maven
    from scripts.provision.python_env import Packages

_WAIT_S: Final = 900


def main(arguments: Sequence[str] = ()) -> int:
    """Run all steps; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/setup", description="Turn a fresh clone into a working tree.")
    parser.add_argument("--without-archive", action="store_true", help="make no archive (Spark starts slowly)")
    parser.add_argument("--only", choices=LISTS, help="fetch this list of jars and do nothing else")
    parser.add_argument(
        "--variant",
        choices=get_args(Variant),
        default=SLIM,
        help="full: also what the image's variant full has, for soal local invoke --variant full; once made, each"
        " set-up keeps it up to date",
    )
    options = parser.parse_args(arguments)
    place = Place(ROOT)
    began = time.monotonic()
    try:
        with _alone(place):
            reports = (
                _fetched(place, options.only)
                if options.only
                else _steps(place, options.variant, with_archive=not options.without_archive)
            )
    except Failure as error:
        say(f"failed: {error.told}")
        return 1
    outcome = "done" if any(step.changed for step in reports) else "nothing to do"
    say(f"{outcome} in {time.monotonic() - began:.1f} s: {'; '.join(step.text for step in reports)}")
    return 0


def _steps(place: Place, variant: Variant, *, with_archive: bool) -> list[Found]:
    """Install Spark's packages in parallel with the jars, then the other packages with log store and archive."""
    place.sweep()
    (packages, slim), (maven, java, jars) = side_by_side(lambda: _spark(place), lambda: _java_and_jars(place))

    def of_java() -> list[Found]:
        logstore = ensure_logstore(place, java, maven)
        return [logstore, ensure_archive(place, java)] if with_archive else [logstore]

    of_logstore, installed = side_by_side(of_java, lambda: [packages.complete(), ensure_rie(place)])
    steps = [slim, *installed, *jars, *of_logstore]
    # If the variant full exists, update it with slim, to whose jars it links.
    full = home_of(place.home, FULL)
    if variant == FULL or full.exists():
        wants_archive = with_archive and (variant == FULL or archive_of(full).is_file())
        steps += _full(place, maven, java, with_archive=wants_archive)
    return steps


def _full(place: Place, maven: Callable[[], Maven], java: Java, *, with_archive: bool) -> list[Found]:
    steps = [ensure_packages(place, FULL), ensure_jars(place, maven, "full-jars"), link_jars(place)]
    steps += [ensure_archive(place, java, FULL)] if with_archive else []
    mark_complete(place)
    return steps


def _spark(place: Place) -> tuple[Packages, Found]:
    packages = ensure_spark(place)
    return packages, ensure_packages(place, SLIM)


def _java_and_jars(place: Place) -> tuple[Callable[[], Maven], Java, list[Found]]:
    java, step = ensure_java(place, os.environ, install)
    maven = functools.cache(lambda: find_maven(java, install))
    return maven, java, [step, *(ensure_jars(place, maven, name) for name in ("jars", "local-jars", "rest-jars"))]


def _fetched(place: Place, name: str) -> list[Found]:
    java, step = ensure_java(place, os.environ, install)
    return [step, ensure_jars(place, lambda: find_maven(java, install), name)]


@contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Hold the lock of this tree, so that concurrent set-ups do the work once.

    The commands that set-up runs inherit it; the kernel releases it when the last of them has ended.
    """
    place.home.mkdir(exist_ok=True)
    with (place.home / "setup.lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)  # noqa: FBT003 - its signature
        until = time.monotonic() + _WAIT_S
        has_said = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Failure(
                        f"another scripts/setup holds {lock.name} for {_WAIT_S} s",
                        todo="end it, then run scripts/setup again",
                    ) from None
            if not has_said:
                say("waiting for another scripts/setup in this tree")
                has_said = True
            time.sleep(0.2)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
