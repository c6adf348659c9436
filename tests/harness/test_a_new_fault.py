"""A new fault is one file and one line: schedules, scripts, hunts, breaking by hand and the page know it then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.newcomer import ROOT, answers_of

FILE = '''
"""Nodes that fall asleep, and wake up."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import Observed
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import Repair
from nemesis.roles import RoleKind


class Doze(NodeFault, frozen=True):
    """Let the holders of ``role`` sleep."""

    kind: ClassVar[str] = "doze"
    verb: ClassVar[str] = "nap"
    in_a_script: ClassVar[str] = "Let it sleep; other nodes take it for dead"
    undone_by: ClassVar[Repair[int]] = Repair(
        "wake", Capability.PROCESSES, lambda target, node: require(target.processes).resume(node)
    )
    family: ClassVar[str] = "naps"
    hits: ClassVar[tuple[RoleKind, ...]] = (RoleKind.LEADER,)
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    spares_process: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Observed:
        """Let it sleep."""
        return require(target.processes).pause(node)
'''
LINE = "from nemesis.faults.doze import Doze as Doze\n"

#: With acks=1 a leader that slept loses what its followers lacked.
PLAN = """
families = ["naps"]
settings = { acks = 1 }
workload = { partitions = 1, duration_ms = 9_000 }
worlds = { simulated = { runs = 1 } }

[[schedule]]
begin_ms = 500
end_ms = 1_500
fault = "partition"
role = "leader"
shape = "from-brokers"

[[schedule]]
begin_ms = 1_400
end_ms = 6_000
fault = "doze"
role = "leader"
"""

ASKED = """
import json, sys
from pathlib import Path

from harness.cli.app import exit_code_of
from harness.runs.cluster import BREAKS, ByHand, ClusterRequest
from harness.plan import RunSpec, Simulated, parse_plan
from harness.ground.choices import Choices
from harness.lab.search.all_portfolios import EVERYTHING
from harness.lab.search.portfolios import Portfolio
from harness.runs.run import planned
from harness.runs.stories import parse_story, perform_cell
from harness.worlds.simulated import SimulatedWorld

def drawn(spec):
    return sorted({step.fault.kind for step in planned(spec, Choices(spec.seed).draw).steps})

def by_hand(spec):
    world, receipts = SimulatedWorld(spec, Choices(1)), []
    world.open()
    hands = ByHand(world.target, world.clock.now_us, receipts.append)
    hands.answer(ClusterRequest(op="break", fault="nap", node="0"))
    hands.answer(ClusterRequest(op="heal"))
    world.close()
    return [(one.fault, one.mark, one.took_effect) for one in receipts]

plan = '[worlds.simulated]\\n[workload]\\npartitions = 1\\n'
spec = parse_plan('families = ["naps"]\\n' + plan, "p").runs()[0]
story = 'number = "M1"\\ntitle = "t"\\nsteps = "nap 1\\\\nwait up to 3 s until 1 is fenced\\\\nwake 1"\\n'
Path("p.toml").write_text(sys.argv[1])
code = exit_code_of(["campaign", "p.toml", "--out", "out"])
print(json.dumps({
    "schedules": drawn(spec),
    "stories": perform_cell(parse_story(story, "my.toml"), "all/2").disagreements,
    "hunt": [drawn(one.spec(1, 0, {})) for one in EVERYTHING if one.name == "in-sync/naps"],
    "storm": drawn(Portfolio(name="any", kinds=("nap",)).spec(1, 0, {})),
    "by hand": by_hand(spec),
    "page": "doze broker 0" in Path("out/report.html").read_text(),
    "code": code,
}))
"""


@pytest.mark.system
def test_a_fault_that_is_one_file_and_one_line_is_known_everywhere(tmp_path: Path) -> None:
    faults = shutil.copytree(ROOT / "nemesis", tmp_path / "nemesis") / "faults"
    (faults / "doze.py").write_text(FILE)
    door = faults / "__init__.py"
    door.write_text(door.read_text().replace("from nemesis.faults.kill", f"{LINE}from nemesis.faults.kill", 1))
    answers = answers_of(tmp_path, ASKED, PLAN)
    assert answers == {
        "schedules": ["doze"],
        "stories": [],
        "hunt": [["doze"]],
        "storm": ["doze"],
        "by hand": [["doze", "begin", True], ["doze", "end", True]],
        "page": True,
        "code": 0,
    }
