"""How to reach a catalog: the session's settings, a settler's own configuration, and pyiceberg, which connects to REST
servers and Glue. It takes most of a second to import, and a database needs only SQLAlchemy.

A settler reaches only catalogs of its own configuration: Spark's settings that it was given, or those of `SOAL_CONF`,
and pyiceberg's variables (`PYICEBERG_CATALOG__<NAME>__URI`, `__CREDENTIAL`), which win. Whoever may write documents
would otherwise choose where its logins go, and which metadata decides. A document says only which Glue catalog it is,
since all of Glue's addresses are AWS's own.
"""

from __future__ import annotations

import functools
import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from safewriter.errors import UnsupportedError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.glue import GluePointer
from safewriter.tables.iceberg.rest import RestPointer
from safewriter.tables.iceberg.sql import SqlPointer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.catalog import Catalog
    from sqlalchemy import Engine

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.iceberg.pointer import Pointer

__all__ = ["configured", "of_session", "open_pointer", "to_pyiceberg", "told"]

_CONF: Final = "SOAL_CONF"
_VARIABLES: Final = "pyiceberg_"
_FILE: Final = ".pyiceberg.yaml"
_SETTINGS: Final = "spark.sql.catalog."
_CATALOG_CLASSES: Final = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
"""The second wraps Spark's own catalog, `spark_catalog`, and has its own tables in one of the same kinds."""
_TYPES: Final = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
}
_LOGIN: Final = "rest.auth.type"
_LOGINS: Final = ("none", "oauth2", "sigv4")
_SIGNS: Final = "rest.sigv4-enabled"
"""The older name of `rest.auth.type=sigv4`, and pyiceberg's."""
_KEYS: Final = ("access-key-id", "secret-access-key", "session-token")
"""Iceberg's own keys for its signature (`rest.…`), where there are any: pyiceberg has them under other names."""
_TOLD: Final = {
    "type": re.compile("jdbc|rest|glue"),
    "glue.id": re.compile("[0-9]{12}"),
    "client.region": re.compile("[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}"),
}
"""What a checkpoint tells of a catalog, and the form of each value."""


def of_session(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a catalog in a session's settings, its kind always under `type`.

    Raises `UnsupportedError` if there is no such Iceberg catalog, or if its kind cannot be guarded.
    """
    prefix = f"{_SETTINGS}{name}"
    if settings.get(prefix) not in _CATALOG_CLASSES:
        raise UnsupportedError(
            f"{prefix} is {settings.get(prefix) or 'not set'}; an Iceberg table is guarded in a catalog of the class"
            f" {_CATALOG_CLASSES[0]}"
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
    if kind == "rest":
        _check_login(name, properties)
    if kind == "glue" and "lock-impl" in properties:
        raise UnsupportedError(
            f"catalog {name!r} commits under a lock (lock-impl) and then names no version to Glue, so it could"
            " overwrite a commit that SafeWriter makes without a JVM and without that lock. Remove lock-impl: Glue"
            " itself lets only one of two commits win"
        )
    return {**properties, "type": kind}


def _check_login(name: str, properties: Mapping[str, str]) -> None:
    """Raise `UnsupportedError` for a login of a REST catalog that Java has and pyiceberg has not."""
    login = properties.get(_LOGIN, "none")
    header = next((key for key in properties if key.lower() == "header.authorization"), None)
    if login.lower() in _LOGINS and header is None:
        return
    raise UnsupportedError(
        f"catalog {name!r} logs in by {header or f'{_LOGIN}={login}'}, and no settler can log in so: it has no JVM. Use"
        f" {_LOGIN}=oauth2 (credential, token) or {_LOGIN}=sigv4"
    )


def told(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what a checkpoint may tell of a catalog, as it is written and as it is believed: no address, no login."""
    return {key: value for key, value in properties.items() if key in _TOLD and _TOLD[key].fullmatch(value)}


def configured(name: str, settings: Mapping[str, str], document: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which a settler outside of a session reaches a catalog: those of its own configuration.

    `settings`: Spark's, if the settler has them. `document`: what the checkpoint says of the catalog; it counts only
    for Glue. Raises `UnsupportedError` if the settler's configuration does not name the catalog.
    """
    variables, named = parsed(_of_environment(name)), {}
    settings = settings or _own_settings(needed="uri" not in variables)
    if f"{_SETTINGS}{name}" in settings:
        try:
            named = to_pyiceberg(name, of_session(name, settings))
        except UnsupportedError:
            if "uri" not in variables:
                raise
    own = {**named, **variables}
    if "type" not in own and "uri" in own:
        own["type"] = "rest" if own["uri"].startswith("http") else "sql"
    if own.get("type") == "glue" or "uri" in own:
        return own
    glue = told(document)
    if glue.get("type") == "glue" and not named:
        return {**glue, **own}
    variable = f"PYICEBERG_CATALOG__{name.upper().replace('-', '_')}"
    raise UnsupportedError(
        f"this settler has no configuration for the catalog {name!r}, and asks no address that a document names: set"
        f" spark.sql.catalog.{name} and its properties in SOAL_CONF, or {variable}__URI (and __TYPE, __CREDENTIAL …)"
        " in its environment"
    )


def _own_settings(*, needed: bool) -> dict[str, str]:
    try:
        settings = parsed(os.environ.get(_CONF) or "{}")
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        if not needed:
            return {}
        raise UnsupportedError(
            f"{_CONF} is no JSON object, so that it names no catalog: make it one of Spark's settings"
        )
    return {str(key): str(value) for key, value in settings.items()}


def open_pointer(name: TableName, properties: Mapping[str, str], table_store: Callable[[str], ObjectStore]) -> Pointer:
    """Open a table by the properties of a session, under Iceberg's own names, or by those of `configured`.

    `table_store` opens an object store by its `s3://` URI. Raises `UnsupportedError` if the properties lack the
    catalog's kind.
    """
    reached = tuple(sorted(properties.items()))

    def opened() -> Catalog:
        return _catalog(name.catalog, reached, _of_environment(name.catalog))

    def connected() -> Engine:
        return _engine(name.catalog, reached, _of_environment(name.catalog))

    kind = properties.get("type")
    if kind is None:
        raise UnsupportedError(f"nothing says how to reach the catalog {name.catalog!r} of {name}")
    if kind == "rest":
        return RestPointer(name, opened)
    if kind == "glue":
        return GluePointer(name, opened, table_store)
    return SqlPointer(name, connected, table_store)


@functools.lru_cache(maxsize=8)
def _catalog(name: str, properties: tuple[tuple[str, str], ...], environment: str) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog(name, **{**parsed(environment), **to_pyiceberg(name, dict(properties))})


@functools.lru_cache(maxsize=8)
def _engine(name: str, properties: tuple[tuple[str, str], ...], environment: str) -> Engine:
    """Connect to a database by the same properties as pyiceberg does."""
    from sqlalchemy import create_engine

    own = {**parsed(environment), **to_pyiceberg(name, dict(properties))}
    if "uri" not in own:
        raise UnsupportedError(f"nothing says where the database of the catalog {name!r} is: it has no uri")
    return create_engine(own["uri"], pool_pre_ping=str(own.get("pool_pre_ping")).lower() == "true")


def _of_environment(name: str) -> str:
    """Return the catalog's properties from pyiceberg's environment variables as they are now, as JSON.

    pyiceberg itself reads its variables once, at its import, and would miss a password that was rotated since.
    """
    # Where there is nothing for it to read, it is not imported.
    folders = (Path.cwd(), Path(os.path.expanduser("~")))  # noqa: PTH111 - `Path.home` raises without a home
    if not any(variable.lower().startswith(_VARIABLES) for variable in os.environ) and not any(
        (folder / _FILE).is_file() for folder in folders
    ):
        return "{}"
    from pyiceberg.utils.config import Config

    config = Config()
    # Variables have no hyphen: pyiceberg reads each underscore in them as one.
    return json.dumps(config.get_catalog_config(name) or config.get_catalog_config(name.replace("_", "-")) or {})


def to_pyiceberg(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which pyiceberg opens the same catalog: those of a JDBC catalog have other names."""
    kind = properties["type"]
    signs = properties.get(_LOGIN, "").lower() == "sigv4" or properties.get(_SIGNS, "").lower() == "true"
    if kind == "rest" and signs:
        keys = {f"client.{key}": properties[f"rest.{key}"] for key in _KEYS if f"rest.{key}" in properties}
        return {**properties, **keys, _SIGNS: "true"}
    if kind in ("rest", "glue"):
        return dict(properties)
    if kind == "sql":
        return {**properties, "init_catalog_tables": "false"}
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
