"""Real faults, with and without the guard: the control arm must lose what the guard keeps."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.lab.campaign.live.cases import Case, Write
from tests.lab.campaign.live.faults import PHASES, AtMoment, Deadline
from tests.lab.campaign.live.laboratory import Laboratory
from tests.lab.campaign.live.running import replay
from tests.lab.campaign.record import CASES, CaseRecord
from tests.lab.campaign.running import MANIFEST, run
from tests.lab.campaign.workers import workers
from tests.lab.experiment.plan import FORMATS
from tests.lab.results import OtherResultsError, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.campaign.live.faults import Fault
    from tests.lab.experiment.plan import Format

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    with Laboratory("moto") as made:
        yield made


@pytest.mark.parametrize(
    ("name", "kind", "landed", "broken"),
    [
        ("delta-append-plain-after-02", "delta_log/commit", True, ["unacknowledged", "doubled"]),
        pytest.param("delta-append-plain-torn-02", "delta_log/commit", False, ["orphans"], marks=pytest.mark.matrix),
        pytest.param("delta-append-plain-late-02", None, False, ["changed", "doubled"], marks=pytest.mark.matrix),
        # The stopped writer overwrites the retry's commit with its own, as stock Delta on S3 does.
        pytest.param("delta-append-plain-frozen-02", None, False, ["orphans"], marks=pytest.mark.matrix),
        pytest.param("delta-merge-guarded-late-01", "marker", False, [], marks=pytest.mark.matrix),
        # The claim arrives behind a recovery that found no document.
        pytest.param("delta-append-guarded-late-04", "checkpoint", False, [], marks=pytest.mark.matrix),
        *(
            pytest.param(f"{name}-{phase}-05", None, None, [], marks=pytest.mark.matrix)
            for name in ("delta-append-guarded", "iceberg-append-guarded")
            for phase in PHASES
        ),
    ],
)
def test_a_case_breaks_what_it_must(
    laboratory: Laboratory, *, name: str, kind: str | None, landed: bool | None, broken: list[str]
) -> None:
    """A guarded case breaks no promise."""
    found = laboratory.carry_out(Case.parse(name))
    assert found.hit
    assert sorted(found.violations) == sorted(broken), found.error
    assert kind in (None, found.key_class)
    assert landed in (None, found.landed)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("delta-append-guarded-late-06", "delta_log/commit"),
        pytest.param("iceberg-append-guarded-after-05", "data", marks=pytest.mark.matrix),
    ],
)
def test_a_case_on_an_s3_that_takes_requests_at_once_breaks_nothing(name: str, kind: str) -> None:
    """Nobody here has written it, and it checks the signatures of Spark's, Python's and the readers' clients.

    In a process of its own, as a campaign has it: the tests' Spark knows the other S3.
    """
    with workers(1) as pool:
        found = pool.submit(replay, Case.parse(name), "seaweedfs").result()
    assert (found.violations, found.hit, found.key_class) == ([], True, kind), found.error


@pytest.mark.parametrize(
    "fault",
    [
        lambda: AtMoment("kill", "data", 20),
        pytest.param(lambda: AtMoment("stop", "data", 20), marks=pytest.mark.matrix),
        pytest.param(lambda: AtMoment("memory", "data", 20), marks=pytest.mark.matrix),
        pytest.param(lambda: AtMoment("error", "data", 0, 500), marks=pytest.mark.matrix),
        pytest.param(lambda: AtMoment("drop", "data", 0), marks=pytest.mark.matrix),
        pytest.param(lambda: AtMoment("slow", "checkpoint", 0), marks=pytest.mark.matrix),
        pytest.param(lambda: Deadline(9_000), marks=pytest.mark.matrix),
    ],
    ids=["kill", "stop", "memory", "error", "drop", "slow", "deadline"],
)
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_fault_at_a_moment_breaks_nothing_with_the_guard(
    laboratory: Laboratory, fault: Callable[[], Fault], table_format: Format
) -> None:
    """This holds for any fault."""
    case = SimpleNamespace(name="moment", write=Write(table_format, "append", guarded=True), fault=fault)
    found = laboratory.carry_out(cast("Case", case))
    assert (found.violations, found.hit) == ([], True), found.error


@pytest.mark.matrix
def test_one_process_can_have_a_laboratory_after_another() -> None:
    """Java caches clients of an S3 by the bucket's name, and the next S3 is at another address."""
    for name in ("delta-append-guarded-after-06", "iceberg-append-guarded-after-05"):
        with Laboratory("moto") as own:
            found = own.carry_out(Case.parse(name))
            assert (found.violations, found.hit) == ([], True), found.error


@pytest.mark.matrix
def test_a_campaign_ends_by_itself_and_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """Each write's requests are hit in order until none is left; no case is carried out twice."""
    assert not run(tmp_path, "live", select="iceberg append plain lost", jobs=1, budget_s=0)
    assert read(tmp_path / CASES, CaseRecord) == ()
    assert run(tmp_path, "live", select="iceberg append plain lost", jobs=1, budget_s=None)
    records = read(tmp_path / CASES, CaseRecord)
    assert [one.hit for one in records] == [True] * (len(records) - 1) + [False]
    assert len(records) > 4, "data, manifest, list, metadata"
    assert run(tmp_path, "live", select="iceberg append plain lost", jobs=1, budget_s=None)
    assert read(tmp_path / CASES, CaseRecord) == records

    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "commit": "another"}))
    with pytest.raises(OtherResultsError, match="commit is 'another' there"):
        run(tmp_path, "live", select="delta", jobs=1, budget_s=0)


def test_words_that_name_no_write_are_refused(tmp_path: Path) -> None:
    """The error comes before anything is made."""
    with pytest.raises(ValueError, match="'hudi' selects no write"):
        run(tmp_path / "none", "live", select="hudi", jobs=1, budget_s=None)
    assert not (tmp_path / "none").exists()
