"""The files that the examples read: PySpark's own, and generated ones with the columns of those that only Spark's
source has.
"""

from __future__ import annotations

import io
import json
import random
from typing import TYPE_CHECKING, Any, Final

from tests.lab.examples.listing import MLLIB, RESOURCES, folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

__all__ = ["put_files"]

_PEOPLE: Final = (("Ines", None), ("Jorge", 30), ("Mara", 19))
_USERS: Final[tuple[tuple[str, str | None, list[int]], ...]] = (("Ines", None, [3, 9, 15, 20]), ("Jorge", "red", []))
_POINTS: Final = 100
_DIMENSIONS: Final = 10
_WORDS: Final = ("china", "river", "city", "road", "tea", "silk", "paper", "harbour", "mountain", "bridge")
_LINES: Final = 200
_SEED: Final = 23


def put_files(client: S3Client, bucket: str, user: str) -> None:
    """Put all files where relative paths lead in a default file system: `user/NAME/`."""
    brought = folder().parents[3] / "data"
    for path in brought.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), bucket, f"user/{user}/data/{path.relative_to(brought).as_posix()}")
    for name, body in _made():
        client.put_object(Bucket=bucket, Key=f"user/{user}/{name}", Body=body)


def _made() -> Iterator[tuple[str, bytes]]:
    yield f"{RESOURCES}/people.txt", "".join(f"{name}, {age or 29}\n" for name, age in _PEOPLE).encode()
    rows = [{"name": name} if age is None else {"name": name, "age": age} for name, age in _PEOPLE]
    yield f"{RESOURCES}/people.json", "".join(json.dumps(row) + "\n" for row in rows).encode()
    jobs = "".join(f"{name};{age or 32};Developer\n" for name, age in _PEOPLE)
    yield f"{RESOURCES}/people.csv", f"name;age;job\n{jobs}".encode()
    persons = "".join(f"<person><name>{name}</name><age>{age or 29}</age></person>" for name, age in _PEOPLE)
    yield f"{RESOURCES}/people.xml", f"<people>{persons}</people>".encode()
    yield f"{RESOURCES}/numbers.txt", b"3\n1\n2\n"
    yield from _columnar()
    seeded = random.Random(_SEED)  # noqa: S311 - made-up values
    points = ([seeded.choice((-1, 1)), *(seeded.gauss(0, 1) for _ in range(_DIMENSIONS))] for _ in range(_POINTS))
    yield f"{MLLIB}/lr_data.txt", "".join(" ".join(map(str, point)) + "\n" for point in points).encode()
    texts = (" ".join(seeded.choices(_WORDS, k=20)) for _ in range(_LINES))
    yield f"{MLLIB}/text8_lines", "".join(f"{text}\n" for text in texts).encode()


def _columnar() -> Iterator[tuple[str, bytes]]:
    import pyarrow as pa
    from pyarrow import orc, parquet

    names, colours, numbers = zip(*_USERS, strict=True)
    kept = pa.list_(pa.int32())
    users = pa.table({"name": names, "favorite_color": colours, "favorite_numbers": pa.array(numbers, kept)})
    for ending, write in (("parquet", parquet.write_table), ("orc", orc.write_table)):
        yield f"{RESOURCES}/users.{ending}", _written(write, users)
    for number, name in (("1", "dir1/file1.parquet"), ("2", "dir1/dir2/file2.parquet")):
        yield f"{RESOURCES}/{name}", _written(parquet.write_table, pa.table({"file": [f"file{number}.parquet"]}))


def _written(write: Any, table: Any) -> bytes:
    buffer = io.BytesIO()
    write(table, buffer)
    return buffer.getvalue()
