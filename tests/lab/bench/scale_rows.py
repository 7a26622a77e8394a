"""Rows with the fourteen columns of the sample data, computed by Spark from their number, without reading a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COLUMNS", "frame_of"]

# A generator for each column of scripts.accommodations. A hash spreads the values, so that columns compress like data.
COLUMNS: Final = {
    "id": "id",
    "name": "concat('Bright room ', hex(xxhash64(id)))",
    "price": "cast(9 + pmod(hash(id), 400) as int)",
    "city": "element_at(array('Berlin', 'Köln', 'Málaga', 'Kraków', '京都'), cast(1 + pmod(hash(id, 1), 5) as int))",
    "country": "element_at(array('DE', 'DE', 'ES', 'PL', 'JP'), cast(1 + pmod(hash(id, 1), 5) as int))",
    "geonames_id": "cast(2950159 + pmod(hash(id, 1), 5) as int)",
    "timezone": "if(pmod(hash(id, 1), 5) = 4, 'Asia/Tokyo', 'Europe/Berlin')",
    "reviews": "cast(pmod(hash(id, 2), 400) as int)",
    "rating": "round(2 + pmod(hash(id, 3), 300) / 100, 2)",
    "satisfaction": "cast(pmod(hash(id, 4), 101) as int)",
    "beds": "cast(1 + pmod(hash(id, 5), 6) as int)",
    "checkin": "date_add(date'2026-01-01', cast(pmod(hash(id, 6), 365) as int))",
    "city_id": "cast(pmod(hash(id, 1), 5) as int)",
    "accommodation_type": "if(pmod(hash(id, 7), 3) = 0, 'Private room', 'Entire home/apt')",
}
"""Expressions of Spark SQL, by the name of the column."""


def frame_of(spark: SparkSession, rows: int) -> DataFrame:
    """Return `rows` rows, with one partition per core of the session."""
    return spark.range(rows).selectExpr(*(f"{expression} AS {name}" for name, expression in COLUMNS.items()))
