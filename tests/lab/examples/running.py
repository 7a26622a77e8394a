"""Run the examples one after the other in one function, whose warm sandbox serves the next one."""

from __future__ import annotations

import getpass
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from scripts.local.function import Function, function_variables, home_of_variant
from soal.invocation.report import report_of
from soal.local.names import CHECKPOINTS, DATA, SCRIPTS
from soal.target import local_target
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.examples.data import put_files
from tests.lab.examples.listing import examples, folder
from tests.lab.examples.record import RESULTS, ExampleRecord
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from scripts.emulator.rie import LambdaEmulator
    from soal.home import Home
    from tests.lab.examples.listing import Example

__all__ = ["run_examples"]

_TIMEOUT_S: Final = 300
_ENDLESS_S: Final = 60
_MEMORY_MB: Final = 3008
_LAKE: Final = f"s3a://{DATA}"
_DEFAULT: Final = "spark.hadoop.fs.defaultFS"
# As on a machine with four cores: with two, one half of a cross-validation's twelve rows has only one label.
_CONF: Final = {"spark.default.parallelism": "4"}


def run_examples(
    into: Path, variant: Variant, home: Home, select: str, progress: Callable[[str], None]
) -> tuple[ExampleRecord, ...]:
    """Run the examples whose name holds `select` and that have no line yet in the folder `into`; return all lines.

    `home`: the working tree's home folder; `progress` gets the name of the running example.
    """
    into.mkdir(parents=True, exist_ok=True)
    path = into / RESULTS
    done = {record.example for record in read(path, ExampleRecord) if record.variant == variant}
    left = [example for example in examples() if select in example.name and example.name not in done]
    if left:
        with EmbeddedS3(buckets=(SCRIPTS, DATA, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as s3, ExitStack() as stack:
            client = s3.observer()
            put_files(client, DATA, getpass.getuser())
            for example in left:
                client.upload_file(str(folder() / example.name), SCRIPTS, example.name)
            warm: LambdaEmulator | None = None
            for number, example in enumerate(left, 1):
                progress(f"{number} of {len(left)}: {example.name}")
                if not example.can_run:
                    append(path, _record(example, variant))
                    continue
                if example.is_endless:
                    with _function(s3, variant, home, _ENDLESS_S).emulator() as cold:
                        append(path, _run(example, variant, cold, _ENDLESS_S))
                    continue
                if warm is None:
                    warm = stack.enter_context(_function(s3, variant, home, _TIMEOUT_S).emulator())
                append(path, _run(example, variant, warm, _TIMEOUT_S))
    return tuple(record for record in read(path, ExampleRecord) if record.variant == variant)


def _function(s3: EmbeddedS3, variant: Variant, home: Home, timeout_s: int) -> Function:
    here = home_of_variant(home, variant)
    given = {"SOAL_CONF": json.dumps(_CONF), "SOAL_CONF_ALLOW": _DEFAULT}
    variables = function_variables(local_target(s3.endpoint), CHECKPOINTS, given, here, variant)
    return Function(variables, timeout_s, _MEMORY_MB, home, python=here.python)


def _run(example: Example, variant: Variant, function: LambdaEmulator, timeout_s: int) -> ExampleRecord:
    event = {
        "entryPoint": f"s3://{SCRIPTS}/{example.name}",
        "entryPointArguments": [
            word.replace("{data}", f"{_LAKE}/user/{getpass.getuser()}") for word in example.arguments
        ],
        "conf": {} if example.is_local else {_DEFAULT: _LAKE},
    }
    report = report_of(function.invoke(event), timeout_s)
    if report.result is None:
        return _record(example, variant, "UNKNOWN", report.problem)
    result = report.result
    is_usage = result.error is not None and result.error.usage
    return _record(example, variant, str(result.state), result.state_details, is_usage=is_usage)


def _record(
    example: Example, variant: Variant, state: str | None = None, says: str | None = None, *, is_usage: bool = False
) -> ExampleRecord:
    return ExampleRecord(
        example=example.name, variant=variant, needs=example.needs, state=state, is_usage=is_usage, says=says
    )
