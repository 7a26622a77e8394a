"""Parse `sparkSubmitParameters`, a string of StartJobRun, into settings."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError, described

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SubmitParameters", "parse_submit_parameters"]

# Options of spark-submit that are just another notation for a setting.
_AS_CONF: Final = {
    "--driver-memory": "spark.driver.memory",
    "--driver-cores": "spark.driver.cores",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--num-executors": "spark.executor.instances",
}
_REFUSED: Final = {
    "--master": "the job runs on this function's own local Spark; leave it out",
    "--deploy-mode": "the job runs on this function's own local Spark; leave it out",
    "--packages": "nothing is resolved at run time; add jars in a derived image",
    "--jars": "nothing is resolved at run time; add jars in a derived image",
    "--class": "only Python scripts run here",
    "--files": "read other files from S3 in the script",
    "--archives": "read other files from S3 in the script",
    "--driver-java-options": "the Java virtual machine is set up by the handler; leave it out",
    "--driver-class-path": "nothing is resolved at run time; add jars in a derived image",
    "--properties-file": "write the settings as --conf key=value",
}


@dataclass(frozen=True, slots=True)
class SubmitParameters:
    """The content of the string; `wrong`: what is wrong with it, for a caller that looks for more."""

    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: tuple[str, ...] = ()
    name: str | None = None
    wrong: tuple[InputError, ...] = ()


def parse_submit_parameters(text: str, path: str) -> SubmitParameters:
    """Parse the string, whose path in the event is `path`; raise `InputError` if it is no list of options. The caller
    checks the settings with those of `conf`.
    """
    conf: dict[str, str] = {}
    py_files: tuple[str, ...] = ()
    name: str | None = None
    wrong = []
    for option, value in _options(text, path):
        if option in ("--conf", "-c"):
            key, equals, setting = value.partition("=")
            if not equals:
                wrong.append(InputError(path, f"--conf {described(value)} must be key=value"))
            conf[key.strip()] = setting.strip()
        elif option in _AS_CONF:
            conf[_AS_CONF[option]] = value
        elif option == "--py-files":
            py_files = tuple(file.strip() for file in value.split(",") if file.strip())
        elif option == "--name":
            name = value
        else:
            why = _REFUSED.get(option, "is not an option that is known here")
            wrong.append(InputError(path, f"{described(option)}: {why}"))
    return SubmitParameters(conf, py_files, name, tuple(wrong))


def _options(text: str, path: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(path, f"cannot be split into words ({error}); check the quotes") from None
    options = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            raise InputError(
                path, f"{described(word)} is not an option; arguments of the script go to entryPointArguments"
            )
        option, equals, value = word.partition("=")
        if not equals or option == "--conf":
            next_word = next(rest, None) if not equals else value
            if next_word is None:
                raise InputError(path, f"{described(option)} has no value")
            value = next_word
        options.append((option, value))
    return options
