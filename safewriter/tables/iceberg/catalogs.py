"""How to reach a catalog: the session's settings, those that a checkpoint may hold, and pyiceberg, which connects.

A checkpoint holds no secret: only the properties in `_OPEN` go into it. A settler takes the rest from its environment,
by pyiceberg's own names: `PYICEBERG_CATALOG__<NAME>__CREDENTIAL`, or `__URI` for an address with a password.
"""

from __future__ import annotations

import functools
import json
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from safewriter.errors import UnsupportedError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.glue import GluePointer
from safewriter.tables.iceberg.rest import RestPointer
from safewriter.tables.iceberg.sql import SqlPointer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.catalog import Catalog

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.iceberg.pointer import Pointer

__all__ = ["of_session", "open_pointer", "to_pyiceberg", "without_secrets"]

_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"
_TYPES: Final = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
}
_OPEN: Final = frozenset(
    {
        "type", "uri", "warehouse", "jdbc.schema-version", "jdbc.user", "prefix", "scope", "oauth2-server-uri",
        "rest.sigv4-enabled", "rest.signing-name", "rest.signing-region", "glue.id", "glue.endpoint", "client.region",
    }
)  # fmt: skip
_LOGIN: Final = re.compile("password=|//[^/@]*:[^/@]*@")


def of_session(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a catalog in a session's settings, its kind always under `type`.

    Raises `UnsupportedError` if there is no such Iceberg catalog, or if its kind cannot be guarded.
    """
    prefix = f"spark.sql.catalog.{name}"
    if settings.get(prefix) != _CATALOG_CLASS:
        raise UnsupportedError(
            f"{prefix} is {settings.get(prefix) or 'not set'}; an Iceberg table is guarded in a catalog of the class"
            f" {_CATALOG_CLASS}"
        )
    properties = {key[len(prefix) + 1 :]: value for key, value in settings.items() if key.startswith(f"{prefix}.")}
    impl = properties.pop("catalog-impl", "unknown")
    kind = properties.pop("type", None) or _TYPES.get(impl, impl)
    if kind == "hadoop":
        raise UnsupportedError(
            f"catalog {name!r} is a Hadoop catalog: on S3 it renames and rewrites its version hint without a condition,"
            " so two writers lose each other's commits and no publishing can be safe. Use a REST, JDBC or Glue catalog"
        )
    if kind not in ("jdbc", "rest", "glue"):
        raise UnsupportedError(f"catalog {name!r} is of the kind {kind!r}; use a REST, JDBC or Glue catalog")
    if kind == "glue" and "lock-impl" in properties:
        raise UnsupportedError(
            f"catalog {name!r} commits under a lock (lock-impl) and then names no version to Glue, so it could"
            " overwrite a commit that SafeWriter makes without a JVM and without that lock. Remove lock-impl: Glue"
            " itself lets only one of two commits win"
        )
    return {**properties, "type": kind}


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a checkpoint may hold."""
    return {
        key: value for key, value in properties.items() if key in _OPEN and not (key == "uri" and _LOGIN.search(value))
    }


def open_pointer(name: TableName, properties: Mapping[str, str], table_store: Callable[[str], ObjectStore]) -> Pointer:
    """Open a table by the properties of a session or of a checkpoint, under Iceberg's own names.

    `table_store` opens an object store by its `s3://` URI. Raises `UnsupportedError` if the properties lack the
    catalog's kind.
    """
    reached = tuple(sorted(properties.items()))

    def opened() -> Catalog:
        return _catalog(name.catalog, reached, _of_environment(name.catalog))

    kind = properties.get("type")
    if kind is None:
        raise UnsupportedError(f"nothing says how to reach the catalog {name.catalog!r} of {name}")
    if kind == "rest":
        return RestPointer(name, opened)
    return (GluePointer if kind == "glue" else SqlPointer)(name, opened, table_store)


@functools.lru_cache(maxsize=8)
def _catalog(name: str, properties: tuple[tuple[str, str], ...], environment: str) -> Catalog:
    return load_catalog(name, **{**parsed(environment), **to_pyiceberg(name, dict(properties))})


def _of_environment(name: str) -> str:
    """Return the catalog's properties from pyiceberg's environment variables as they are now, as JSON.

    pyiceberg itself reads its variables once, at its import, and would miss a password that was rotated since.
    """
    return json.dumps(Config().get_catalog_config(name) or {})


def to_pyiceberg(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which pyiceberg opens the same catalog: those of a JDBC catalog have other names."""
    kind = properties["type"]
    if kind in ("rest", "glue"):
        return dict(properties)
    uri = {"uri": _database(name, properties)} if "uri" in properties else {}
    warehouse = {key: properties[key] for key in ("warehouse",) if key in properties}
    return {**warehouse, **uri, "type": "sql", "init_catalog_tables": "false"}


def _database(name: str, properties: Mapping[str, str]) -> str:
    """Return a JDBC address as SQLAlchemy writes it."""
    if find_spec("sqlalchemy") is None:
        raise UnsupportedError(
            f"catalog {name!r} is a database, and SQLAlchemy, which connects to it, is not installed; add the"
            " packages of requirements/sql.txt to a derived image, beside the database's Java driver"
        )
    uri = properties["uri"]
    if uri.startswith("jdbc:sqlite:"):
        path = uri.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
        return f"sqlite:///{path}"
    if uri.startswith("jdbc:postgresql://"):
        rest = uri.removeprefix("jdbc:postgresql://")
        user, password = properties.get("jdbc.user"), properties.get("jdbc.password")
        login = (
            "" if user is None else quote(user, safe="") + (f":{quote(password, safe='')}" if password else "") + "@"
        )
        return f"postgresql+psycopg2://{login}{rest}"
    raise UnsupportedError(f"catalog {name!r}: {uri.split('://')[0]} is no supported database; use PostgreSQL")
