"""The image's size above its base counts SoAL's layers only, and the limit applies to them."""

from __future__ import annotations

import json

from scripts.image.size import Layer, Size, above_base

BASE = {"CreatedBy": "", "Size": "164"}
JAVA = {"CreatedBy": "COPY /opt/soal/java /opt/soal/java # buildkit", "Size": "70"}
LABEL = {"CreatedBy": "LABEL a=b", "Size": "0"}
JARS = {"CreatedBy": "COPY /opt/soal/jars /opt/soal/jars # buildkit", "Size": "60"}
ADDED = {"CreatedBy": "RUN pip install pandas # buildkit", "Size": "5"}


def history(*rows: dict[str, str]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_layers_down_to_the_first_of_ours_are_above_the_base() -> None:
    """Empty steps are left out; the steps of a derived image count."""
    assert above_base(history(ADDED, LABEL, JARS, JAVA, LABEL, BASE)) == (
        Layer("RUN pip install pandas", 5),
        Layer("COPY /opt/soal/jars /opt/soal/jars", 60),
        Layer("COPY /opt/soal/java /opt/soal/java", 70),
    )


def test_an_image_without_anything_of_ours_has_nothing_above_its_base() -> None:
    """An image without our layers has none above its base."""
    assert above_base(history(BASE)) == ()


def test_the_limit_is_for_what_is_above_the_base() -> None:
    """The limit applies only to the layers above the base."""
    assert Size("slim", 1_560_000_000, 900_000_000, (), ()).is_within_limit
    assert not Size("slim", 1_560_000_001, 900_000_000, (), ()).is_within_limit
    assert Size("full", 1_900_000_000, 900_000_000, (), ()).is_within_limit
    assert not Size("full", 1_900_000_001, 900_000_000, (), ()).is_within_limit
