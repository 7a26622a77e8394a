from __future__ import annotations

import pytest

from safewriter.errors import UnsupportedError
from safewriter.tables.iceberg.name import TableName


@pytest.mark.parametrize(
    ("text", "parts"),
    [("c.db.t", ("c", ("db", "t"))), ("c.a.b.t", ("c", ("a", "b", "t"))), ("`c`.`db`.`t`", ("c", ("db", "t")))],
)
def test_a_name_is_a_catalog_and_an_identifier(text: str, parts: tuple[str, tuple[str, ...]]) -> None:
    """Quoted or not, it is one name."""
    name = TableName.parse(text)
    assert (name.catalog, name.identifier) == parts
    assert str(name) == text.replace("`", "")


def test_a_branch_is_named_as_iceberg_names_it() -> None:
    """The table's own name is what statements use, and what the catalog knows."""
    name = TableName.parse("c.db.t.`branch_audit`")
    assert (name.identifier, name.target, name.table, name.quoted) == (("db", "t"), "audit", "c.db.t", "`c`.`db`.`t`")
    assert TableName.parse(str(name)) == name
    assert TableName.parse("c.db.branch_audit").target == "main", "a table may be called so"


@pytest.mark.parametrize("text", ["t", "db.t", "s3a://lake/a.b.c", "c..t", "", "c.db.t.branch_"])
def test_what_names_no_table_of_a_catalog_is_refused(text: str) -> None:
    """A path above all: nobody commits to one by compare-and-swap."""
    with pytest.raises(UnsupportedError, match=r"catalog\.namespace\.table"):
        TableName.parse(text)
