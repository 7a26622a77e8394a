"""The phases of a cold run, from what its parts leave."""

from __future__ import annotations

import itertools

from tests.lab.bench.phases import PHASES, Facts, Request, classes_of, phases_of

LOG = """\
[1000ms] java.lang.Object source: shared objects file
[1010ms] io.soal.host.Host source: file:/opt/soal/jars/soal-logstore.jar
[1020ms] org.apache.spark.SparkContext source: shared objects file (top)
[1021ms] org.apache.spark.SparkContext$$Lambda$7/0x00007f530d2d32d8 source: org.apache.spark.SparkContext
[1022ms] org.apache.spark.sql.catalyst.expressions.GeneratedClass source: file:/opt/soal/unsigned/commons-compiler.jar
[1023ms] java.lang.invoke.LambdaForm$MH/0x00007f530d2d3a source: __JVM_LookupDefineClass__
not a line of it
"""


def test_each_class_of_the_log_is_told_by_its_origin() -> None:
    """Code that is compiled at run time names the jar of its class loader, and is not from it."""
    found = classes_of(LOG.splitlines(), 990.0)
    assert [(one.origin, one.at_ms) for one in found] == [
        ("archive", 10),
        ("jar", 20),
        ("archive", 30),
        ("lambda", 31),
        ("made", 32),
        ("made", 33),
    ]
    assert found[1].name == "io.soal.host.Host"


def facts(*requests: Request) -> Facts:
    return Facts({"handler": 5, "java": 300}, classes_of(LOG.splitlines(), 500.0), requests, 2_000)


def test_phases_have_no_gaps_and_count_what_happens_in_them() -> None:
    """From the event to the answer; a boundary that nothing has recorded leaves its phase out."""
    claim = Request("PutObject", "soal-checkpoints", "marker", 700, 705)
    other = Request("GetObject", "soal-scripts", "other", 310, 312)
    phases = phases_of(facts(other, claim))
    assert [one.name for one in phases] == [
        "the emulator starts the handler",
        "the handler imports, and starts Java",
        "Java starts",
        "Java has started, and has no job yet",
        "Spark's context",
        "SafeWriter claims the write",
    ]
    assert [one.began_ms for one in phases] == [0, 5, 300, 510, 520, 700]
    assert phases[-1].ended_ms == 2_000
    assert all(one.ended_ms == after.began_ms for one, after in itertools.pairwise(phases))
    assert [one.requests for one in phases] == [0, 0, 1, 0, 0, 1]
    assert phases[4].classes == {"archive": 1, "lambda": 1, "made": 2}


def test_a_boundary_that_comes_too_early_makes_an_empty_phase() -> None:
    """The handler's last record of a run is that of its beginning if the run never got further."""
    early = Request("PutObject", "soal-checkpoints", "run", 100, 101)
    last = phases_of(facts(early))[-1]
    assert (last.name, last.began_ms, last.ended_ms) == (PHASES[-1][0], 520, 2_000)
