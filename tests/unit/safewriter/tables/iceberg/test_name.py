"""The name of an Iceberg table is parsed to catalog, identifier and branch, and a path or other text is refused."""

from __future__ import annotations

import pytest

from safewriter.errors import UnsupportedError
from safewriter.tables.iceberg.name import TableName


@pytest.mark.parametrize(
    ("text", "parts", "said"),
    [
        ("c.db.t", ("c", ("db", "t")), "c.db.t"),
        ("c.a.b.t", ("c", ("a", "b", "t")), "c.a.b.t"),
        ("`c`.`db`.`t`", ("c", ("db", "t")), "c.db.t"),
        ("c.db.my-table", ("c", ("db", "my-table")), "c.db.my-table"),
        ("c.db.`my-table`", ("c", ("db", "my-table")), "c.db.my-table"),
        ("c.db.`a.b`", ("c", ("db", "a.b")), "c.db.`a.b`"),
        ("c.db.`a``b`", ("c", ("db", "a`b")), "c.db.`a``b`"),
    ],
)
def test_a_name_is_a_catalog_and_an_identifier(text: str, parts: tuple[str, tuple[str, ...]], said: str) -> None:
    """However it is quoted, one table has one text, and that is parsed to the same name."""
    name = TableName.parse(text)
    assert (name.catalog, name.identifier) == parts
    assert str(name) == said
    assert TableName.parse(said) == name


def test_a_branch_is_named_as_iceberg_names_it() -> None:
    """The table's own name is what the catalog knows."""
    name = TableName.parse("c.db.t.`branch_audit`")
    assert (name.identifier, name.target, name.quoted, str(name)) == (
        ("db", "t"), "audit", "`c`.`db`.`t`", "c.db.t.branch_audit"
    )  # fmt: skip
    assert TableName.parse(str(name)) == name
    assert TableName.parse("c.db.branch_audit").target == "main", "a table may be called so"


def test_statements_call_the_table_by_the_attempt() -> None:
    """In the catalog of the open blocks, with the branch that they write."""
    assert TableName.parse("c.db.`a``b`").staged("sw-1-2-3") == "`safewriter`.`sw-1-2-3`.`db`.`a``b`"
    assert TableName.parse("c.d.t.branch_x").staged("sw-1") == "`safewriter`.`sw-1`.`d`.`t`.`branch_x`"


@pytest.mark.parametrize(
    "text",
    ["t", "db.t", "s3a://l/a.b.c", "c..t", "", "c.db.t.branch_", "c.db.`t", "c.db.t`", "c.db.`a`b`", ".c.d.t"],
)
def test_what_names_no_table_of_a_catalog_is_refused(text: str) -> None:
    """A path above all: no commit to one is a compare-and-swap."""
    with pytest.raises(UnsupportedError, match=r"catalog\.namespace\.table"):
        TableName.parse(text)
