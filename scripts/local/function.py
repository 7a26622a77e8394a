"""The function on this machine: the real handler under the real emulator, in an environment like Lambda's."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from handler.spark.missing_dependencies import SLIM
from handler.variables import VARIABLES
from safewriter.parsing import parsed
from scripts.image.docker import require, with_docker
from scripts.provision.java import default_java
from scripts.provision.python_env import is_complete
from soal.console.problem import Problem
from soal.doctor.variables import unknown_variables
from soal.home import Home, home_of
from soal.invocation.report import report_of
from soal.local.names import spark_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from scripts.emulator.durable import DurableEmulator
    from scripts.emulator.rie import LambdaEmulator
    from soal.invocation.report import Report
    from soal.target import Target


def home_of_variant(home: Home, variant: Variant) -> Home:
    """Return the home of a variant's function on this machine. Raises `Problem` if the home is missing, incomplete or
    out of date.
    """
    variant_home = Home(home_of(home.path, variant))
    if not variant_home.python.is_file():
        problem = f"{variant_home.path} has no packages of the image's variant {variant}"
    elif variant != SLIM and not is_complete(home.path):
        problem = f"{variant_home.path}, the image's variant {variant}, is incomplete or out of date"
    else:
        return variant_home
    raise Problem(problem, todo=f"make it: scripts/setup --variant {variant}")


# The function inherits the guard's settings from the caller's environment; --env gives all others.
_PASSED: Final = tuple(variable.name for variable in VARIABLES if variable.name.startswith("SW_"))


@dataclass(frozen=True, slots=True)
class Function:
    """The function to emulate."""

    variables: Mapping[str, str]
    timeout_s: int
    memory_mb: int
    home: Home
    on_line: Callable[[str], None] = field(default=lambda _line: None)
    image: str | None = None
    """The image's name; None: the function runs without a container."""
    mounts: tuple[str, ...] = ()
    """The container's mounts, as arguments of docker's `--volume`."""
    python: Path | None = None
    """The function's Python without a container; default: with the packages of the variant slim."""

    def invoke(self, event: object) -> Report:
        """Start the emulator, deliver one event, stop the emulator. Raises `EmulatorError` if it fails."""
        with self.emulator() as emulator:
            report = report_of(emulator.invoke(event), self.timeout_s)
            return replace(report, cpu_s=emulator.cpu_s())

    @contextlib.contextmanager
    def emulator(self) -> Iterator[LambdaEmulator]:
        """Run the emulator during the block, for several events, one after the other."""
        from scripts.emulator.container import ContainerEmulator
        from scripts.emulator.rie import LambdaEmulator

        if self.image is None:
            with LambdaEmulator(self.variables, python=self.python, **self._limits()) as emulator:
                yield emulator
            return
        with with_docker(self.home) as docker:
            require(docker, self.image)
            limits = self._limits()
            with ContainerEmulator(docker, self.image, self.variables, mounts=self.mounts, **limits) as emulator:
                yield emulator

    @contextlib.contextmanager
    def durable(self) -> Iterator[DurableEmulator]:
        """Run the durable service with this function during the block. Raises `EmulatorError` if either fails."""
        from scripts.emulator.durable import DurableEmulator

        if self.image is not None:
            raise Problem("--durable runs the working tree, and --docker the image", todo="leave one of them out")
        with DurableEmulator(self.variables, python=self.python, **self._limits()) as service:
            yield service

    def _limits(self) -> dict[str, Any]:
        """Return the arguments that all emulators take."""
        return {
            "timeout_s": self.timeout_s,
            "memory_mb": self.memory_mb,
            "binary": self.home.rie,
            "on_line": self.on_line,
        }


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Parse the values of --env, each NAME=VALUE. Raises `Problem`."""
    pairs = [(text, *text.partition("=")) for text in texts]
    for text, name, equals, _ in pairs:
        if not equals or not name:
            raise Problem(f"--env {text}: not an assignment", todo="give it as NAME=VALUE")
    values = {name: value for _, name, _, value in pairs}
    for name, hint in unknown_variables(values).items():
        raise Problem(f"--env {name}: SoAL has no such variable, so nothing would read it", todo=hint)
    return values


def function_variables(
    target: Target,
    checkpoint_bucket: str | None,
    assigned: Mapping[str, str],
    home: Home | None,
    variant: Variant = SLIM,
) -> dict[str, str]:
    """Return the function's environment; `assigned` (--env) overrides. `home` is the home of the image's `variant`, or
    None for a container, which has its own jars and Java.
    """
    passed = {name: value for name in _PASSED if (value := os.environ.get(name))}
    of_home = {} if home is None else {"SOAL_HOME": str(home.path), "SOAL_IMAGE_VARIANT": variant, **_java(home)}
    # Lambda always sets it, and scripts may read it.
    session = {"AWS_SESSION_TOKEN": "local"} if target.is_local else {}
    variables = {**passed, **of_home, **session, **target.aws, **assigned, **_conf(target, assigned)}
    if checkpoint_bucket is not None:
        variables.setdefault("SW_CHECKPOINT_BUCKET", checkpoint_bucket)
    return variables


def _conf(target: Target, assigned: Mapping[str, str]) -> dict[str, str]:
    """Return SOAL_CONF with the target's catalogs and the settings of --env, which override."""
    catalogs = {key: value for item in target.catalogs.items() for key, value in spark_settings(*item).items()}
    try:
        settings = {**catalogs, **parsed(assigned.get("SOAL_CONF", "{}"))}
    except (TypeError, ValueError):
        return {}  # the handler will report the invalid SOAL_CONF
    return {"SOAL_CONF": json.dumps(settings)} if catalogs else {}


def _java(home: Home) -> dict[str, str]:
    """Return JAVA_HOME: the caller's, else from the `java` on our PATH, since the function has another PATH."""
    if not os.environ.get("JAVA_HOME") and (home.path / "java").exists():
        return {}
    found = default_java(os.environ)
    return {} if found is None else {"JAVA_HOME": str(found)}
