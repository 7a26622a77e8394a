"""Check the list of variables against all code that reads, sets or documents them."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from handler.functions.redrive import _Settings as RedriveSettings
from handler.settings import HandlerSettings
from handler.variables import VARIABLES, Reader, Setter, Variable
from infra.config import Config
from infra.environment import Resources, job_environment, redrive_environment, sweeper_environment
from safewriter.errors import SettingError
from safewriter.settings import Settings
from scripts.reference import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
LISTED = {variable.name: variable for variable in VARIABLES}
TRUTHS = [variable for variable in VARIABLES if variable.values.startswith("true")]
KEYED = [variable for variable in VARIABLES if variable.key is not None]
# Read by boto3 itself.
BY_LIBRARIES = {"AWS_ENDPOINT_URL_SECRETS_MANAGER", "POWERTOOLS_LOG_LEVEL"}
OTHER_VALUES: dict[str, Any] = {
    "warn_before_ms": 20_000,
    "audit_log": False,
    "entry_point": "jobs/nightly.py",
    "continue_max": 3,
    "errors": "return",
    "jit": "c1",
    "reuse": "off",
    "event_logs": "on",
    "timeout_s": 300,
    "conf": {"spark.sql.catalog.lake.uri": "https://catalog"},
    "conf_allow": ("spark.sql.shuffle.*", "spark.x=1,2"),
    "secrets": {"PGPASSWORD": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf#password"},
    "turns": {"t": {"A": {"script": "a.py", "predecessor": "B"}}},
    "redrive_attempts": 3,
    "log_level": "DEBUG",
}
AS_TEXT = {
    "turns": '{"t":{"A":{"script":"a.py","predecessor":"B"}}}',
    "audit_log": "false",
    "conf": '{"spark.sql.catalog.lake.uri":"https://catalog"}',
    "conf_allow": "spark.sql.shuffle.* spark.x=1,2",
    "secrets": '{"PGPASSWORD":"arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf#password"}',
}


def sources() -> Iterator[Path]:
    for room in ("handler", "safewriter", "infra", "scripts", "soal"):
        yield from (ROOT / room).rglob("*.py")


def strings(path: Path) -> Iterator[str]:
    """Yield all texts of a source that are values: no docstrings, and no messages, which name variables among words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_in_sources() -> set[str]:
    texts = {text for path in sources() if path.name != "variables.py" for text in strings(path)}
    return {text for text in texts if re.fullmatch(r"(SOAL|SW)_[A-Z0-9_]+|LAMBDA_TIMEOUT_MS", text)}


def aliases() -> set[str]:
    fields = {**HandlerSettings.model_fields, **RedriveSettings.model_fields}
    return {field.alias for field in fields.values() if field.alias is not None}


def schemas() -> dict[str, Any]:
    return {
        **HandlerSettings.model_json_schema(by_alias=True)["properties"],
        **RedriveSettings.model_json_schema(by_alias=True)["properties"],
    }


@pytest.mark.slow
def test_every_variable_that_the_code_names_is_listed() -> None:
    """The test finds a new variable before it needs explaining."""
    assert named_in_sources() - LISTED.keys() == set()
    assert aliases() - LISTED.keys() == set()


def test_every_listed_variable_is_read() -> None:
    """No variable without an effect is documented."""
    read = named_in_sources() | aliases() | BY_LIBRARIES
    powertools = {name for name in LISTED if name.startswith("POWERTOOLS_")}
    observability = set(strings(ROOT / "handler" / "observability.py"))

    assert LISTED.keys() - read - (powertools & observability) == set()


def test_the_scan_finds_a_variable() -> None:
    """It finds names in real sources, in calls as well as in constants."""
    assert {"SOAL_JOURNAL", "SW_CHECKPOINT_BUCKET", "SOAL_FUNCTION"} <= named_in_sources()
    assert {"SOAL_JIT", "SOAL_REDRIVE_QUEUE"} <= aliases()


@pytest.mark.parametrize("variable", [one for one in VARIABLES if one.choices or one.most], ids=lambda one: one.name)
def test_bounds_are_those_of_the_code(variable: Variable) -> None:
    """If the code has limits for a variable, the list has the same."""
    found = schemas().get(variable.name, {})

    if variable.name in aliases():
        assert tuple(found.get("enum", ())) == variable.choices
        assert (found.get("minimum"), found.get("maximum")) == (variable.least, variable.most)
    if variable.key is not None:
        of_stack = Config.model_fields[variable.key]
        values = of_stack.annotation if variable.choices else None
        assert getattr(values, "__args__", ()) == variable.choices
        assert [one.le for one in of_stack.metadata if hasattr(one, "le")] == [variable.most] * bool(variable.most)


@pytest.mark.parametrize("variable", [one for one in VARIABLES if one.default], ids=lambda one: one.name)
def test_defaults_are_those_of_the_code(variable: Variable) -> None:
    """The list's default applies if the variable is not set."""
    with_nothing = Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket"})
    fields = {field.alias: field.default for field in HandlerSettings.model_fields.values()}
    code = {
        **fields,
        "SW_WARN_BEFORE_MS": with_nothing.warn_before_ms,
        "SW_AUDIT_LOG": str(with_nothing.audit_log).lower(),
    }

    if variable.name in code:
        assert str(code[variable.name]) == variable.default
    if variable.key is not None and (own := Config.model_fields[variable.key].default) is not None:
        assert str(own).lower() == variable.default.lower()


@pytest.mark.parametrize(
    "variable", [one for one in VARIABLES if one.values.startswith("true")], ids=lambda one: one.name
)
def test_a_truth_value_is_read_alike_everywhere(variable: Variable) -> None:
    """Any case and three spellings are accepted; the error for anything else names the variable."""

    def read(text: str) -> bool:
        found = Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket", variable.name: text})
        return bool(getattr(found, variable.name.removeprefix("SW_").lower()))

    assert [read(text) for text in ("True", "1", "YES", "yes")] == [True] * 4
    assert [read(text) for text in ("False", "FALSE", "0", "No")] == [False] * 4
    for text in ("", "off?", "falsch"):
        with pytest.raises(SettingError, match=variable.name):
            read(text)


@pytest.mark.parametrize("variable", KEYED, ids=lambda one: one.name)
def test_a_context_key_becomes_its_variable_in_every_function_that_reads_it(variable: Variable) -> None:
    """No other function gets it; defaults are left out, since a function has 4 KB for all variables."""
    made = Resources("Soal", "checkpoints", "scripts")
    key = str(variable.key)
    changed = Config().model_copy(update={key: OTHER_VALUES[key]})

    def environments(config: Config) -> dict[Reader, dict[str, str]]:
        return {
            Reader.JOB: job_environment(config, made),
            Reader.SWEEPER: sweeper_environment(config, made),
            Reader.REDRIVE: redrive_environment(config, made, function="arn", queue="url", parked="url", jobs="arn"),
        }

    expected = AS_TEXT.get(key, str(OTHER_VALUES[key]))
    for reader, environment in environments(changed).items():
        assert environment.get(variable.name) == (expected if reader in variable.readers else None)
    if Config.model_fields[key].default is not None and variable.default:
        assert all(variable.name not in environment for environment in environments(Config()).values())


def test_the_sweeper_gets_of_the_settings_only_catalogs() -> None:
    """It reaches no catalog that only a document names, and runs no Spark."""
    catalog = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}
    config = Config().model_copy(update={"conf": {**catalog, "spark.sql.ansi.enabled": "false"}})
    made = Resources("Soal", "checkpoints", "scripts")
    assert json.loads(sweeper_environment(config, made)["SOAL_CONF"]) == catalog


def test_the_stack_sets_what_is_listed_as_its_own_and_nothing_else() -> None:
    """Every variable of a function comes from a context key or the stack."""
    made = Resources("Soal", "checkpoints", "scripts", "dynamodb://locks")
    config = Config().model_copy(update=OTHER_VALUES)
    found = {
        *job_environment(config, made),
        *sweeper_environment(config, made),
        *redrive_environment(config, made, function="arn", queue="url", parked="url", jobs="arn"),
    }

    assert found == {one.name for one in VARIABLES if one.key is not None or one.setter is Setter.STACK}


def test_names_and_keys_are_unique() -> None:
    """No variable is listed twice, and no context key sets two."""
    assert len(LISTED) == len(VARIABLES)
    assert len({one.key for one in KEYED}) == len(KEYED) == len(OTHER_VALUES)


def test_the_page_has_each_variable_once() -> None:
    """The list generates docs/reference/settings, in sections by setter."""
    text = variables()

    assert [text.count(f"`{name}`\n: ") for name in LISTED] == [1] * len(LISTED)
