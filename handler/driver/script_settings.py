"""Leave out, and record, a script's own Spark settings that cannot work here.

Scripts written for a cluster or another runtime name a master, a heap, packages, keys, Hive. Spark would ignore some of
these and fail on others, and some would bypass the guard (another log store, another endpoint). The handler refuses an
event with such a setting, but an existing script should run unchanged. This does not protect against a script, which
can still write to Hadoop's configuration.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from handler.redaction.secret_names import is_secret, may_name_a_secret
from handler.spark_settings.catalogs import in_image
from handler.spark_settings.fixed import is_outside_tmp, rule, why_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["OwnSettings", "why_left_out"]

EXTENSIONS: Final = "spark.sql.extensions"
_CREDENTIALS: Final = ("access.key", "secret.key", "session.token")
# Fixed in an event, but a script may set them: it may read other places, also with its own keys.
_FREE: Final = rule(
    "spark.jars spark.files spark.archives spark.submit.pyFiles spark.executorEnv.* "
    + " ".join(f"spark.hadoop.fs.s3a.bucket.*.{name}" for name in _CREDENTIALS),
    "",
)
_KEYS: Final = rule(
    " ".join(f"spark.hadoop.fs.s3a.{name}" for name in _CREDENTIALS),
    "Spark and the guard share the function's role; leave it out, or give keys of another account to one bucket"
    " (fs.s3a.bucket.NAME.…)",
)
_MEANINGLESS: Final = (
    _KEYS,
    rule(
        "spark.driver.memory spark.driver.memoryOverhead* spark.driver.cores",
        "Java has started before the script; set the function's memory, or name it in the event's conf",
    ),
    rule(
        "spark.executor.memory spark.executor.memoryOverhead* spark.executor.cores spark.executor.instances"
        " spark.cores.max spark.dynamicAllocation.* spark.shuffle.service.* spark.yarn.* spark.kubernetes.*",
        "there are no executors, the job runs in its driver; leave it out",
    ),
    rule(
        "spark.sql.catalogImplementation",
        "Hive is not in the image (enableHiveSupport); use tables by path or an Iceberg catalog",
    ),
    rule("spark.ui.enabled", "nobody can open Spark's pages in a function; the result has timings, the log the rest"),
)


def why_left_out(key: str, value: str, preset: str | None) -> str | None:
    """Return why a script's setting has no meaning here and what to do; None if the script may set it.

    `preset`: the handler's own value of the setting.
    """
    if preset is not None and value.lower() == preset.lower():
        return None
    # In a session's options Spark accepts it without the prefix, too.
    key = f"spark.hadoop.{key}" if key.startswith("fs.") else key
    if _FREE.pattern.fullmatch(key):
        return None
    if (why := next((rule.why for rule in _MEANINGLESS if rule.pattern.fullmatch(key)), None)) is not None:
        return why
    if (why := why_fixed(key)) is not None:
        return why
    return "it is outside /tmp, and nothing else can be written here" if is_outside_tmp(value) else None


class OwnSettings:
    """Filters a script's settings in the two places where PySpark passes them to Spark.

    It calls `note` with key and reason, once for each key that it leaves out; never with a value, which may be a
    secret. `variables`: the environment in which the JVM starts Python workers. It calls `on_secret`, perhaps more than
    once, if the script sets a secret that is not the handler's: Java libraries may keep it.
    """

    def __init__(
        self,
        note: Callable[[str, str], None],
        variables: Mapping[str, str] | None = None,
        *,
        on_secret: Callable[[], None] = lambda: None,
    ) -> None:
        self._note = note
        self._variables = variables or {}
        self._on_secret = on_secret
        self._noted: set[str] = set()
        self._from_builder = False

    def install(self) -> None:
        """Wrap `SparkSession.builder.getOrCreate`, and the method that creates every SparkContext."""
        from pyspark.core.context import SparkContext
        from pyspark.sql.session import SparkSession

        get_or_create = SparkSession.Builder.getOrCreate
        initialize = SparkContext._initialize_context  # noqa: SLF001 - there for subclasses to replace

        @wraps(get_or_create)
        def get_checked(builder: Any) -> SparkSession:  # noqa: ANN401 - private parts of PySpark's
            SparkContext._ensure_initialized()  # noqa: SLF001 - what getOrCreate does first
            handlers = SparkContext._jvm.SparkConf(True)  # type: ignore[union-attr]  # noqa: FBT003, SLF001 - Java's
            builder._options = self.kept(builder._options, lambda key: handlers.get(key, None))  # noqa: SLF001
            self._from_builder = True  # its context differs only by the builder's options
            try:
                return get_or_create(builder)
            finally:
                self._from_builder = False

        @wraps(initialize)
        def init_checked(context: Any, jconf: Any) -> Any:  # noqa: ANN401 - private parts of PySpark's
            if not self._from_builder:
                self._put_back(jconf, SparkContext._jvm.SparkConf(True))  # type: ignore[union-attr]  # noqa: FBT003, SLF001
                context.master = jconf.get("spark.master")
            context.environment = {**self._variables, **context.environment}
            return initialize(context, jconf)

        SparkSession.Builder.getOrCreate = get_checked  # type: ignore[assignment, method-assign]
        SparkContext._initialize_context = init_checked  # type: ignore[assignment, method-assign]  # noqa: SLF001

    def kept(self, options: Mapping[str, Any], preset_of: Callable[[str], str | None]) -> dict[str, Any]:
        """Return the options that a session gets."""
        conf = {key: value for key, value in options.items() if self._is_kept(key, str(value), preset_of(key))}
        self._look_for_secrets({key: str(value) for key, value in conf.items() if may_name_a_secret(key)}, preset_of)
        if EXTENSIONS in conf:
            conf[EXTENSIONS] = _united(preset_of(EXTENSIONS), str(conf[EXTENSIONS]))
        texts = {key: str(value) for key, value in conf.items()}
        return conf | {key: value for key, value in in_image(texts).items() if preset_of(key) is None}

    def _put_back(self, jconf: Any, handlers: Any) -> None:  # noqa: ANN401 - Java's SparkConf
        """Undo the changes in a SparkConf that the script may not make."""
        conf, presets = _lines(jconf), _lines(handlers)  # one call each; Spark masks secrets, so those differ
        for key in [key for key in conf if conf[key] != presets.get(key)]:
            before = handlers.get(key, None)
            if key == EXTENSIONS:
                jconf.set(key, _united(before, conf[key]))
            elif self._is_kept(key, conf[key], before):
                continue
            elif before is None:
                jconf.remove(key)
            else:
                jconf.set(key, before)
        for key, value in in_image(conf).items():
            jconf.set(key, value)
        names = filter(may_name_a_secret, conf)
        self._look_for_secrets({key: jconf.get(key, "") for key in names}, lambda key: handlers.get(key, None))

    def _look_for_secrets(self, conf: Mapping[str, str], preset_of: Callable[[str], str | None]) -> None:
        if any(is_secret(key, value) and value != preset_of(key) for key, value in conf.items()):
            self._on_secret()

    def _is_kept(self, key: str, value: str, preset: str | None) -> bool:
        why = why_left_out(key, value, preset)
        if why is not None and key not in self._noted:
            self._noted.add(key)
            self._note(key, why)
        return why is None


def _lines(conf: Any) -> dict[str, str]:  # noqa: ANN401 - Java's SparkConf
    return dict(line.partition("=")[::2] for line in conf.toDebugString().splitlines())


def _united(preset: str | None, scripts: str) -> str:
    parts = [part.strip() for part in f"{preset or ''},{scripts}".split(",")]
    return ",".join(dict.fromkeys(part for part in parts if part))
