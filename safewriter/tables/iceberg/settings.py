"""How to reach a catalog: the session's settings, those that a checkpoint may hold, and pyiceberg's own names for them.

A checkpoint holds no secret: only the properties in `_OPEN` go into it. A settler takes the rest from its environment,
by pyiceberg's own names: `PYICEBERG_CATALOG__<NAME>__CREDENTIAL`, or `__URI` for an address with a password.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["of_session", "to_pyiceberg", "without_secrets"]

_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"
_TYPES: Final = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
}
_GLUE: Final = ("type", "warehouse", "glue.id", "glue.endpoint")
_OPEN: Final = frozenset(
    {
        "type", "uri", "warehouse", "jdbc.schema-version", "jdbc.user", "prefix", "scope", "oauth2-server-uri",
        "rest.sigv4-enabled", "rest.signing-name", "rest.signing-region", "glue.id", "glue.endpoint", "client.region",
    }
)  # fmt: skip


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
    found = {key[len(prefix) + 1 :]: value for key, value in settings.items() if key.startswith(f"{prefix}.")}
    kind = found.pop("type", None) or _TYPES.get(found.pop("catalog-impl", ""), "")
    if kind == "hadoop":
        raise UnsupportedError(
            f"catalog {name!r} is a Hadoop catalog: on S3 it renames and rewrites its version hint without a condition,"
            " so two writers lose each other's commits and no publishing can be safe. Use a REST, JDBC or Glue catalog"
        )
    if kind not in ("jdbc", "rest", "glue"):
        raise UnsupportedError(
            f"catalog {name!r} is of the kind {kind or 'unknown'!r}; use a REST, JDBC or Glue catalog"
        )
    if kind == "glue" and "lock-impl" in found:
        raise UnsupportedError(
            f"catalog {name!r} commits under a lock (lock-impl) and then names no version to Glue, so it could"
            " overwrite what is published without a JVM, where nobody takes that lock. Remove lock-impl: Glue itself"
            " lets only one of two commits win"
        )
    return {**found, "type": kind}


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a checkpoint may hold."""
    kept = {key: value for key, value in properties.items() if key in _OPEN}
    if "uri" in kept and _has_password(kept["uri"]):
        kept.pop("uri")
    return kept


def _has_password(uri: str) -> bool:
    return "password=" in uri or re.search(r"//[^/@]*:[^/@]*@", uri) is not None


def to_pyiceberg(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which pyiceberg opens the same catalog; those of a REST catalog have the same names."""
    kind = properties["type"]
    if kind == "rest":
        return dict(properties)
    if kind == "glue":
        names = {"client.region": "glue.region"}
        return {names.get(key, key): properties[key] for key in (*names, *_GLUE) if key in properties}
    uri = {"uri": _database(name, properties)} if "uri" in properties else {}
    kept = {key: properties[key] for key in ("warehouse",) if key in properties}
    return {**kept, **uri, "type": "sql", "init_catalog_tables": "false"}


def _database(name: str, properties: Mapping[str, str]) -> str:
    """Return a JDBC address as SQLAlchemy writes it."""
    if find_spec("sqlalchemy") is None:
        raise UnsupportedError(
            f"catalog {name!r} is a database, and SQLAlchemy, by which it is reached, is not installed; add what"
            " requirements/sql.txt lists to a derived image, beside the database's Java driver"
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
    raise UnsupportedError(f"catalog {name!r}: {uri.split('://')[0]} is no database that is known here; use PostgreSQL")
