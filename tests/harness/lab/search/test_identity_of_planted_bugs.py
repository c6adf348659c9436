"""A planted bug has one identity whatever the night, and another bug has another, though none is told its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkers.verdicts import identity
from harness.lab.search import run_in_memory
from harness.plan import parse_plan

FAMILIES = ("kill", "partition+pause", "kill+pause+partition")
PLAN = """
name = "night"
seed = {seed}
families = ["{family}"]
[settings]
acks = "all"
min.insync.replicas = 2
planted.bug = "{bug}"
[worlds.simulated]
runs = 1
"""


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody tells an identity which bug is planted, as nobody tells of a bug that is not planted."""
    monkeypatch.setattr(identity, "MATTERING", tuple(name for name in identity.MATTERING if name != "planted.bug"))


def identities_of(bug: str, family: str, seed: int) -> Iterator[str]:
    """The identities of what a run shows that nothing permits."""
    for spec in parse_plan(PLAN.format(seed=seed, family=family, bug=bug), "night.toml").runs():
        judgement = run_in_memory(spec).judgement
        yield from (name for anomaly in judgement.broken for name in judgement.identities[anomaly])


@pytest.mark.usefixtures("blind")
def test_one_bug_has_one_identity_under_other_seeds_and_families() -> None:
    each = [{*identities_of("acknowledge-after-append", family, seed)} for family in FAMILIES for seed in (1, 2, 3)]
    assert sum(map(bool, each)) > 6
    assert len(set().union(*each)) == 1


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("other", ["truncate-to-high-watermark", "remember-one-batch", "forget-producers-on-election"])
def test_another_bug_does_not_hide_behind_it(other: str) -> None:
    accepted = {*identities_of("acknowledge-after-append", "kill", 1)}
    shown = [{*identities_of(other, family, 1)} for family in FAMILIES]
    assert any(shown)
    assert all(not each or each - accepted for each in shown)
