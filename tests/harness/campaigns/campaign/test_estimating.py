"""The time of a plan: what campaigns took before says more than the plan's own times."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaigns.campaign import estimate, soak_estimate
from harness.campaigns.campaign.estimating import WRITES_CHECKED_A_SECOND
from harness.ground.machine.versions import MachineSize
from harness.plan import Plan, parse_plan
from harness.records.campaign_record import CampaignRecord, WorldRuns, write_campaign_record
from harness.records.files import PLAN_FILE

TEXT = """
name = "p"
[worlds.simulated]
runs = 10
parallel = 2
workload = { duration_ms = DURATION }
[worlds.processes]
runs = 4
parallel = 2
workload = { duration_ms = DURATION }
"""


def plan(duration_ms: int) -> Plan:
    return parse_plan(TEXT.replace("DURATION", str(duration_ms)), Path("p.toml"))


def earlier(results: Path, name: str, began: str, run_ms: int, *, status: str = "completed") -> None:
    """A campaign of the plan with runs of 10 s that took ``run_ms`` each."""
    directory = results / name
    directory.mkdir(parents=True)
    (directory / PLAN_FILE).write_text(TEXT.replace("DURATION", "10_000"))
    worlds = {world: WorldRuns(planned=4, completed=4, wall_ms=4 * run_ms) for world in ("simulated", "processes")}
    machine = MachineSize(processor="", cores=2, memory_bytes=1, system="")
    record = CampaignRecord(
        name="p", seed=1, status=status, began=began, command="", machine=machine, versions={}, worlds=worlds
    )
    write_campaign_record(directory, record)


def test_without_earlier_campaigns_the_plans_times_decide(tmp_path: Path) -> None:
    expected = estimate(plan(20_000), tmp_path / "none")
    simulated, processes = expected.worlds
    assert simulated.basis == processes.basis == "the plan's times"
    assert processes.run_s == pytest.approx(26)
    assert processes.total_s == pytest.approx(2 * 26)
    assert simulated.run_s < 1
    assert expected.runs_s == processes.total_s, "virtual time goes beside real time"


def test_checks_take_longer_where_more_is_written(tmp_path: Path) -> None:
    few, many = (
        parse_plan(f"{TEXT.replace('DURATION', '10_000')}[workload]\nwrites_per_second = {rate}\n", Path("p.toml"))
        for rate in (100.0, 100_100.0)
    )
    more_s = estimate(many, tmp_path).checking_s - estimate(few, tmp_path).checking_s
    assert more_s == pytest.approx(14 * 10 * 100_000 / WRITES_CHECKED_A_SECOND)


def test_virtual_time_costs_in_proportion_and_real_time_has_a_part_that_does_not_grow(tmp_path: Path) -> None:
    earlier(tmp_path, "before", "2026-01-01", 15_000)
    simulated, processes = estimate(plan(20_000), tmp_path).worlds
    assert simulated.run_s == pytest.approx(30)
    assert processes.run_s == pytest.approx(20 + 5)
    assert processes.basis == "4 runs of before"


def test_the_newest_campaign_that_completed_counts(tmp_path: Path) -> None:
    earlier(tmp_path, "old", "2026-01-01", 15_000)
    earlier(tmp_path, "new", "2026-01-02", 12_000)
    earlier(tmp_path, "broken-off", "2026-01-03", 99_000, status="interrupted")
    (tmp_path / "new" / "runs").mkdir()
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "campaign.json").write_text("{")
    assert estimate(plan(10_000), tmp_path).worlds[1].basis == "4 runs of new"


def test_a_soak_needs_runs_of_each_cell_until_scenarios_are_enough(tmp_path: Path) -> None:
    mixed = 'families = ["kill", "kill+pause"]\nfaults = { exercised_min = 2, count = 6 }\n' + TEXT
    simulated, processes = soak_estimate(parse_plan(mixed.replace("DURATION", "20_000"), Path("p.toml")), tmp_path)
    assert (simulated.runs, processes.runs) == (3, 3), "one of the kills, two of the mixture"
    assert (processes.parallel, processes.run_s, processes.total_s) == (2, pytest.approx(26), pytest.approx(52))
