"""The list of the classes whose lambda expressions become classes."""

from __future__ import annotations

from scripts.image.closure_list import hosts_of
from scripts.image.closures import LIST

LOG = """\
[1.0s][info][class,load] scala.Option source: shared objects file (top)
[1.1s][info][class,load] scala.Option$$Lambda$7/0x00007f530d2d32d8 source: scala.Option
[1.2s][info][class,load] a.B$$Lambda$8/0x00007f530d2d32d8 source: a.B
[1.2s][info][class,load] a.B$$Lambda$9/0x00007f530d2d32d8 source: a.B
[1.3s][info][class,load] a.C$$Lambda$L10 source: shared objects file (top)
[1.3s][info][class,load] a.D$$Lambda$11/0x0000000800d2d32d source: shared objects file (top)
[1.4s][info][class,load] java.lang.invoke.LambdaForm$MH/0x00007f530d source: __JVM_LookupDefineClass__
"""


def test_a_host_is_one_for_which_java_had_to_make_a_class() -> None:
    """Each host is listed once, in order, without hosts whose lambda expressions are in an archive already."""
    assert hosts_of(LOG.splitlines(keepends=True)) == ("a.B", "scala.Option")


def test_the_list_is_in_order_and_names_each_class_once() -> None:
    """The list is sorted without duplicates, so that a diff shows what a new version changes."""
    names = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert names == sorted(set(names))
    assert "org.apache.spark.sql.delta.OptimisticTransactionImpl" in names
