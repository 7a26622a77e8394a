"""The handler reads and writes Spark's properties files: comments, separators, escapes, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handler.spark.properties import read_properties, write_properties

if TYPE_CHECKING:
    from pathlib import Path


def test_comments_blanks_and_both_separators(tmp_path: Path) -> None:
    """People write such files this way."""
    path = tmp_path / "a.conf"
    path.write_text("# a comment\n\nspark.a   1\nspark.b=x y=z\n", encoding="utf-8")
    assert read_properties(path) == {"spark.a": "1", "spark.b": "x y=z"}


def test_a_line_that_is_no_setting_is_an_error(tmp_path: Path) -> None:
    """It would be lost silently."""
    path = tmp_path / "a.conf"
    path.write_text("spark.a\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"spark\.a"):
        read_properties(path)


def test_what_java_would_read_otherwise_is_escaped(tmp_path: Path) -> None:
    """These are separators, comment signs, blanks and backslashes."""
    path = tmp_path / "out"
    write_properties(path, {"spark.b": " a:b=c#d!e\\f", "spark.a": "ü"})
    assert path.read_text(encoding="utf-8") == "spark.a=ü\nspark.b=\\ a\\:b\\=c\\#d\\!e\\\\f\n"
