"""Each of Iceberg's catalogs in a job's Spark settings gets what the image has, and no other catalog does."""

from __future__ import annotations

from handler.spark_settings.catalogs import in_image


def test_each_of_iceberg_s_catalogs_gets_a_way_to_s3_and_to_aws() -> None:
    """This includes the one that wraps Spark's own; a property below a catalog's name is not a catalog."""
    conf = {
        "spark.sql.catalog.a": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.a.catalog-impl": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.c": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    assert in_image(conf) == {
        "spark.sql.catalog.a.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "spark.sql.catalog.a.http-client.type": "urlconnection",
        "spark.sql.catalog.spark_catalog.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "spark.sql.catalog.spark_catalog.http-client.type": "urlconnection",
    }
