"""A settler reaches an Iceberg catalog by the Spark session's settings: kinds, refusals, pyiceberg, no secrets."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from safewriter.errors import UnsupportedError
from safewriter.tables.iceberg import catalogs
from safewriter.tables.iceberg.catalogs import of_session, to_pyiceberg, told

CATALOG = {"spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog"}


def session(**properties: str) -> dict[str, str]:
    named = {f"spark.sql.catalog.c.{key.replace('_', '-')}": value for key, value in properties.items()}
    return {**CATALOG, **named, "spark.sql.catalog.other.uri": "somewhere"}


def test_a_catalog_is_read_from_the_session() -> None:
    """Its own properties, and its kind under one name, however it was given."""
    assert of_session("c", session(type="rest", uri="http://h")) == {"type": "rest", "uri": "http://h"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.iceberg.jdbc.JdbcCatalog", "jdbc"),
        ("org.apache.iceberg.rest.RESTCatalog", "rest"),
        ("org.apache.iceberg.aws.glue.GlueCatalog", "glue"),
    ],
)
def test_a_catalog_may_be_named_by_its_class(name: str, kind: str) -> None:
    """The class is Iceberg's own; the settler without Java needs the kind alone."""
    assert of_session("c", session(catalog_impl=name)) == {"type": kind}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "is not set"),
        ({"spark.sql.catalog.c": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}, "DeltaCatalog"),
        (session(type="hadoop"), "lose each other's commits"),
        (session(type="glue", lock_impl="org.apache.iceberg.aws.dynamodb.DynamoDbLockManager"), "Remove lock-impl"),
        (session(type="hive"), "hive"),
        (session(catalog_impl="org.apache.iceberg.hadoop.HadoopCatalog"), "lose each other's commits"),
        (
            session(catalog_impl="org.apache.iceberg.hive.HiveCatalog"),
            "of the kind 'org.apache.iceberg.hive.HiveCatalog'",
        ),
        (session(catalog_impl="their.Catalog"), "of the kind 'their.Catalog'"),
        ({**session(type="rest"), "spark.sql.catalog.c.rest.auth.type": "basic"}, "logs in by rest.auth.type=basic"),
        ({**session(type="rest"), "spark.sql.catalog.c.rest.auth.type": "a.Manager"}, "rest.auth.type=sigv4"),
        ({**session(type="rest"), "spark.sql.catalog.c.header.authorization": "x"}, "logs in by header.authorization,"),
        (session(), "unknown"),
    ],
)
def test_what_cannot_be_guarded_is_refused_with_the_reason(settings: dict[str, str], why: str) -> None:
    """A Hadoop catalog above all, whose commits on S3 are no compare-and-swap."""
    with pytest.raises(UnsupportedError, match=why):
        of_session("c", settings)


@pytest.mark.parametrize("login", ["none", "oauth2", "OAuth2", "sigv4"])
def test_a_login_that_a_settler_has_is_taken(login: str) -> None:
    """Java takes its name in either case."""
    settings = {**session(type="rest"), "spark.sql.catalog.c.rest.auth.type": login}
    assert of_session("c", settings) == {"type": "rest", "rest.auth.type": login}


def test_the_session_s_own_catalog_may_be_iceberg_s() -> None:
    """It is read as any other, once it has a kind: without one it is Hive's."""
    own = {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}
    assert of_session("spark_catalog", {**own, "spark.sql.catalog.spark_catalog.type": "rest"}) == {"type": "rest"}
    with pytest.raises(UnsupportedError, match="unknown"):
        of_session("spark_catalog", own)


def test_a_lock_is_glue_s_matter_alone() -> None:
    """Other catalogs compare, with or without a lock."""
    assert of_session("c", session(type="jdbc", lock_impl="theirs")) == {"type": "jdbc", "lock-impl": "theirs"}


def test_glue_is_reached_as_java_reaches_it() -> None:
    """Region, account and endpoint have the same names in pyiceberg."""
    session = {"glue.id": "1", "glue.endpoint": "http://glue.example", "client.region": "eu-west-3"}
    client: Any = load_catalog("c", **to_pyiceberg("c", {"type": "glue", **session})).glue  # type: ignore[attr-defined]
    assert (client.meta.region_name, client.meta.endpoint_url) == ("eu-west-3", "http://glue.example")


@pytest.mark.parametrize(
    "more",
    [
        {"uri": "https://cat/v1?token=s3cr3t"},
        {"uri": "jdbc:postgresql://u:s3cr3t@h/db"},
        {"oauth2-server-uri": "https://u:s3cr3t@h/"},
        {"warehouse": "s3cr3t"},
        {"glue.endpoint": "https://h/?k=s3cr3t"},
        {"credential": "id:s3cr3t"},
        {"jdbc.password": "s3cr3t"},
        {"header.Authorization": "s3cr3t"},
        {"glue.id": "s3cr3t"},
        {"client.region": "s3cr3t@h/"},
        {"anything.new": "s3cr3t"},
    ],
)
def test_a_checkpoint_tells_only_which_catalog_it_is(more: dict[str, str]) -> None:
    """No address, since the settler's own configuration has it, and so no login in one."""
    known = {"type": "glue", "glue.id": "123456789012", "client.region": "eu-west-3"}
    assert told({**known, **more}) == {key: value for key, value in known.items() if key not in more}
    assert told({"type": "s3cr3t"}) == {}


@pytest.mark.parametrize(
    ("properties", "uri"),
    [
        ({"uri": "jdbc:sqlite:/a/b.db"}, "sqlite:////a/b.db"),
        ({"uri": "jdbc:sqlite:file:/a/b.db?busy_timeout=1"}, "sqlite:////a/b.db"),
        ({"uri": "jdbc:postgresql://h:5432/db"}, "postgresql+psycopg2://h:5432/db"),
        (
            {"uri": "jdbc:postgresql://h/db", "jdbc.user": "u@x", "jdbc.password": "p/w"},
            "postgresql+psycopg2://u%40x:p%2Fw@h/db",
        ),
        ({"uri": "jdbc:postgresql://h/db", "jdbc.user": "u/x"}, "postgresql+psycopg2://u%2Fx@h/db"),
    ],
)
def test_a_database_is_found_under_both_names(properties: dict[str, str], uri: str) -> None:
    """Java's URL and Python's name the same database."""
    assert to_pyiceberg("c", {"type": "jdbc", **properties})["uri"] == uri


def test_another_database_is_refused() -> None:
    """Its driver is not installed."""
    with pytest.raises(UnsupportedError, match="PostgreSQL"):
        to_pyiceberg("c", {"type": "jdbc", "uri": "jdbc:mysql://h/db"})


def test_a_database_is_no_more_than_read_and_moved() -> None:
    """By default pyiceberg would create its tables."""
    properties = {"type": "jdbc", "uri": "jdbc:sqlite:/a.db", "warehouse": "s3://w", "io-impl": "theirs"}
    assert to_pyiceberg("c", properties) == {
        "type": "sql",
        "uri": "sqlite:////a.db",
        "warehouse": "s3://w",
        "init_catalog_tables": "false",
    }


def test_a_rest_catalog_is_reached_as_it_is() -> None:
    """Its properties have the same names in pyiceberg."""
    properties = {"type": "rest", "uri": "http://h", "scope": "all", "header.X": "1"}
    assert to_pyiceberg("c", properties) == properties


@pytest.mark.parametrize("login", [{"rest.auth.type": "SigV4"}, {"rest.sigv4-enabled": "TRUE"}])
def test_a_catalog_that_wants_aws_s_signature_gets_it_from_pyiceberg_too(login: dict[str, str]) -> None:
    """By the older property, and with the keys that Iceberg has for its signature alone."""
    keys = {"rest.access-key-id": "AK", "rest.secret-access-key": "SK"}
    found = to_pyiceberg("c", {"type": "rest", "uri": "http://h", **login, **keys})
    own = {"client.access-key-id": "AK", "client.secret-access-key": "SK", "rest.sigv4-enabled": "true"}
    assert found == {"type": "rest", "uri": "http://h", **login, **keys, **own}


def test_a_database_cannot_be_reached_where_sqlalchemy_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the plain image: the error says what to add."""
    monkeypatch.setattr(catalogs, "find_spec", lambda _: None)
    with pytest.raises(UnsupportedError, match=r"add the packages of requirements/sql\.txt to a derived image"):
        to_pyiceberg("ice", {"type": "jdbc", "uri": "jdbc:sqlite:/x.db"})
