"""Blocks on tables of catalogs as people log in to them. What is refused, the unit tests show."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from handler.spark_settings.catalogs import HTTP_CLIENT
from safewriter import SafeWriter, UnknownOutcomeError
from scripts.emulator.seaweedfs import SeaweedFS
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3 import Match, Rule
from tests.integration.safewriter.ice_rows import COLUMNS, AbandonedError, append, ids
from tests.support.catalog_logins import CATALOG, Dedup, OAuth, Signing, SigV4, Vending
from tests.support.ice import warehouse
from tests.support.network_faults import LoseReply
from tests.support.observed import LAKE
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request
    from tests.support.ice import Catalog, Ice
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark]
CLIENT = "client:its-secret"
AWS_KEYS = {
    "access-key-id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
    "secret-access-key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
}
SIGNED = {"rest.auth.type": "sigv4", "rest.signing-region": REGION, **HTTP_CLIENT}
SIGNED |= {f"rest.{name}": value for name, value in AWS_KEYS.items()}
needs_aws = [pytest.mark.matrix, pytest.mark.aws]


@dataclass(frozen=True)
class Opened:
    """A session with a catalog of its own, and a table there with five rows."""

    spark: SparkSession
    table: Ice

    def write(self, begin: int, end: int, *, step: str = "one", meanwhile: Callable[[], object] = lambda: None) -> None:
        with SafeWriter(self.spark, self.table.name, format="iceberg", step=step) as block:
            append(self.spark, block.table, begin, end)
            meanwhile()
            block.success()

    def ids(self) -> list[int]:
        return ids(self.spark, self.table.name)

    def statuses(self) -> dict[str, str]:
        return {str(one.step): str(one.status) for one in self.table.documents()}


@pytest.fixture
def opened(spark: SparkSession, s3: EmbeddedS3, rest: Catalog, lake: Lake) -> Iterator[Callable[..., Opened]]:
    """Open the tests' REST catalog once more, with other properties."""

    def made(properties: Mapping[str, str], *, name: str = "login", of: str = "SparkCatalog") -> Opened:
        catalog = replace(
            rest, name=name, spark={**rest.spark, **properties}, pyiceberg={**rest.pyiceberg, **properties}
        )
        session = spark.newSession()
        for key, value in catalog.settings().items():
            session.conf.set(key, value)
        session.conf.set(f"spark.sql.catalog.{name}", f"org.apache.iceberg.spark.{of}")
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}.db")
        table = catalog.table(s3.observer())
        session.sql(f"CREATE TABLE {table.name} {COLUMNS}")
        append(session, table.name, 0, 5)
        return Opened(session, table)

    yield made
    s3.wire.clear_rules()


@pytest.fixture
def oauth(s3: EmbeddedS3, rest: Catalog) -> Iterator[OAuth]:
    """A login whose tokens Iceberg renews each second, until the test's end."""
    login = OAuth(CLIENT, expires_in_s=1)
    login.on(s3)
    yield login
    s3.wire.clear_rules()
    s3.wire.clear_trace()
    # The server behind the login names no end of its tokens, so the next renewal is the last.
    assert until(lambda: any(one.key.endswith("oauth/tokens") for one in s3.trace()))


def credential(rest: Catalog, **more: str) -> dict[str, str]:
    return {"credential": CLIENT, "oauth2-server-uri": f"{rest.spark['uri']}/v1/oauth/tokens", **more}


def test_a_block_outlives_the_token_that_it_began_with(
    opened: Callable[..., Opened], oauth: OAuth, rest: Catalog
) -> None:
    """Iceberg renews its own in time, and the guard gets a new one when its own has ended."""
    one = opened(credential(rest))

    def tokens_end() -> None:
        old = list(oauth.issued)
        assert until(lambda: len(oauth.issued) > len(old) + 2)
        oauth.end(old)

    one.write(5, 8, meanwhile=tokens_end)
    one.write(8, 9, step="two")
    assert one.statuses() == {"one": "committed", "two": "committed"}
    assert one.ids() == list(range(9))
    assert oauth.refused == 1  # the guard's first token


def test_a_login_that_ends_in_a_block_publishes_nothing(
    opened: Callable[..., Opened], s3: EmbeddedS3, rest: Catalog
) -> None:
    """Nothing repeats what no repetition cures, and the guard, which logs in by itself, knows what the table holds."""
    login = OAuth(CLIENT)
    login.on(s3)
    one = opened(credential(rest, **{"token-refresh-enabled": "false"}))
    with pytest.raises(UnknownOutcomeError, match="NotAuthorizedException"):
        one.write(5, 8, meanwhile=lambda: login.end(list(login.issued)))
    assert one.statuses() == {"one": "rolled_back"}
    assert one.table.refs() == {"main"}  # nothing was sent, so nothing needs a fence


@pytest.mark.parametrize("renews", [pytest.param(one, marks=needs_aws) for one in (False, True)])
def test_files_are_opened_with_the_keys_that_the_catalog_lends(
    opened: Callable[..., Opened], s3: EmbeddedS3, rest: Catalog, *, renews: bool
) -> None:
    """Nobody else may read or write them. A block that begins after the keys have ended gets others, and so does one
    that is open, if the catalog says where.
    """
    vending = Vending(LAKE, "rest/", renews=renews)
    vending.on(s3)
    one = opened(lent(rest, s3))
    one.write(5, 8)
    vending.end()
    one.write(8, 9, step="two")
    if renews:
        one.write(9, 10, step="three", meanwhile=vending.end)
    assert set(one.statuses().values()) == {"committed"}
    assert one.ids() == list(range(10 if renews else 9))
    assert vending.denied == []


@pytest.mark.aws
@pytest.mark.matrix
@pytest.mark.parametrize("keys_end", [False, True])
def test_a_settler_needs_no_key_of_the_catalog(
    opened: Callable[..., Opened], s3: EmbeddedS3, rest: Catalog, caplog: pytest.LogCaptureFixture, *, keys_end: bool
) -> None:
    """It gives the verdict by what the catalog says, and leaves the attempt's files, since it may not read them."""
    vending = Vending(LAKE, "rest/")
    vending.on(s3)
    one = opened(lent(rest, s3))

    def ended() -> None:
        if not keys_end:
            raise AbandonedError
        vending.end()
        append(one.spark, one.table.name, 20, 21)

    with pytest.raises(Py4JJavaError if keys_end else AbandonedError):
        one.write(5, 8, meanwhile=ended)
    assert one.statuses() == {"one": "rolled_back"}
    assert "are left" in caplog.text
    assert vending.denied
    assert len(one.table.snapshots()) == 1


def lent(rest: Catalog, s3: EmbeddedS3) -> dict[str, str]:
    own = rest.with_s3_client(s3.endpoint).spark
    asks = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    return {**own, **HTTP_CLIENT, **asks, "warehouse": warehouse("rest", "s3")}


@pytest.mark.parametrize("given_up", [pytest.param(one, marks=needs_aws) for one in (False, True)])
def test_requests_for_files_are_signed_by_the_catalog(
    opened: Callable[..., Opened], s3: EmbeddedS3, rest: Catalog, *, given_up: bool
) -> None:
    """The job has no key at all; the settler gives its verdict without one."""
    signing = Signing(LAKE, "rest/")
    signing.on(s3)
    remote = {"s3.remote-signing-enabled": "true", "signer.endpoint": "v1/aws/s3/sign"}
    one = opened({**rest.with_s3_client(s3.endpoint).spark, **HTTP_CLIENT, **remote})
    if given_up:

        def stop() -> None:
            raise AbandonedError

        with pytest.raises(AbandonedError):
            one.write(5, 8, meanwhile=stop)
        assert one.statuses() == {"one": "rolled_back"}
        assert {request.split()[1] for request in signing.denied} == {CREDENTIALS["AWS_ACCESS_KEY_ID"]}
    else:
        one.write(5, 8)
        assert one.statuses() == {"one": "committed"}
        assert one.ids() == list(range(8))
        assert signing.denied == []
    assert signing.signed > 0


def test_the_session_s_own_catalog_may_be_iceberg_s(opened: Callable[..., Opened]) -> None:
    """`SparkSessionCatalog` has Iceberg's tables beside Spark's own."""
    one = opened({}, name="spark_catalog", of="SparkSessionCatalog")
    one.write(5, 8)
    with pytest.raises(AbandonedError):
        one.write(8, 9, step="two", meanwhile=_give_up)
    assert one.statuses() == {"one": "committed", "two": "rolled_back"}
    assert one.ids() == list(range(8))
    one.table.check()


def _give_up() -> None:
    raise AbandonedError


@pytest.mark.parametrize("service", [pytest.param("glue", marks=needs_aws)])
def test_a_catalog_that_wants_aws_s_signature_gets_it(
    opened: Callable[..., Opened], s3: EmbeddedS3, service: str
) -> None:
    """Of Java and of the guard, as Glue's REST endpoint wants it; the server behind is Iceberg's own."""
    login = SigV4(service)
    login.on(s3)
    one = opened({**SIGNED, "rest.signing-name": service})
    one.write(5, 8)
    with pytest.raises(AbandonedError):
        one.write(8, 9, step="two", meanwhile=_give_up)
    assert one.statuses() == {"one": "committed", "two": "rolled_back"}
    assert one.ids() == list(range(8))
    assert login.checked > 0


@pytest.mark.aws
@pytest.mark.matrix
@pytest.mark.usefixtures("lake")
def test_a_table_of_a_table_bucket_is_guarded(spark: SparkSession, s3: EmbeddedS3) -> None:
    """SeaweedFS has S3 Tables with their REST catalog, whose requests are signed for `s3tables`, and checks all."""
    session = spark.newSession()
    with SeaweedFS() as server:
        properties = {
            **server.signed_catalog("tables"),
            **SIGNED,
            **{f"s3.{name}": value for name, value in AWS_KEYS.items()},
            "s3.path-style-access": "true",
            "client.region": REGION,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        }
        session.conf.set("spark.sql.catalog.buckets", "org.apache.iceberg.spark.SparkCatalog")
        for key, value in properties.items():
            session.conf.set(f"spark.sql.catalog.buckets.{key}", value)
        session.sql("CREATE NAMESPACE IF NOT EXISTS buckets.db")
        session.sql(f"CREATE TABLE buckets.db.t {COLUMNS}")
        append(session, "buckets.db.t", 0, 5)
        with SafeWriter(session, "buckets.db.t", format="iceberg", step="one") as block:
            append(session, block.table, 5, 8)
            block.success()
        with pytest.raises(AbandonedError), SafeWriter(session, "buckets.db.t", format="iceberg", step="two") as block:
            append(session, block.table, 8, 9)
            raise AbandonedError
        assert ids(session, "buckets.db.t") == list(range(8))
    found = [
        json.loads(s3.observer().get_object(Bucket="soal-checkpoints", Key=one["Key"])["Body"].read())
        for one in s3.observer().list_objects_v2(Bucket="soal-checkpoints", Prefix="checkpoints/")["Contents"]
    ]
    assert {one["step"]: one["status"] for one in found if one["table"] == "buckets.db.t"} == {
        "one": "committed",
        "two": "rolled_back",
    }


@pytest.mark.parametrize("lost", [False, True])
def test_a_repeated_publication_is_known_by_its_key(
    opened: Callable[..., Opened], s3: EmbeddedS3, *, lost: bool
) -> None:
    """Iceberg sends it again under the same key if the first answer is lost, and the server repeats its answer."""
    Dedup().on(s3)
    one = opened({})
    keys: list[str | None] = []

    def seen(request: Request) -> Reply:
        keys.append(request.environ.get("HTTP_IDEMPOTENCY_KEY"))
        return LoseReply(503)(request) if lost and len(keys) == 1 else request.apply()

    def watch() -> None:
        s3.wire.add(Rule(Match(bucket=CATALOG, operations={"CatalogChange"}), seen, times=None))

    one.write(5, 8, meanwhile=watch)
    assert one.statuses() == {"one": "committed"}
    assert one.ids() == list(range(8))
    assert len(keys) == 1 + lost
    assert len(set(keys)) == 1
    assert None not in keys
    one.table.check()
