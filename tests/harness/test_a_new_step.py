"""A new step and a new state are classes in one file: scripts, errors, the page and the needs of a run know them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.harness.newcomer import ROOT, answers_of

CLASSES: Final = '''

class Bounce(NodeStep, frozen=True, kw_only=True):
    """End its process, and start it again at once."""

    form: ClassVar[str] = "bounce NODES:nodes"
    strikes: ClassVar[type[Fault]] = Kill
    needs: ClassVar[tuple[Capability, ...]] = Kill.needs

    def act(self, stage: StoryStage) -> str:
        for node in map(stage.node, self.nodes):
            stage.faults.hit(self.strikes, node)
            stage.faults.repair(Kill.undone_by, node)
        return "as good as new"


class Runs(ScriptState, frozen=True):
    """Its process runs."""

    form: ClassVar[str] = "BROKER:broker runs"
    broker: Broker

    def holds(self, stage: StoryStage) -> bool:
        return stage.node(self.broker) in stage.running

    def instead(self, stage: StoryStage) -> str:
        return "it is dead"
'''
ASKED: Final = """
import json
from harness.ground.errors import PlanError
from harness.runs.stories import parse_story, perform_cell, state_forms, step_forms

def story(steps):
    return parse_story(f'number = "M1"\\ntitle = "t"\\nsteps = "{steps}"\\n', "my.toml")

def refused(steps):
    try:
        story(steps)
    except PlanError as error:
        return str(error)

cell = perform_cell(story("bounce 1\\\\nwait until 1 runs\\\\nkill 2\\\\nwait up to 1 s until 2 runs"), "all/2")
print(json.dumps({
    "note": [entry.note for entry in cell.trace.entries if entry.text == "bounce 1"],
    "disagreements": cell.disagreements,
    "faults": sorted(fault.kind for fault in story("bounce 1").faults()),
    "rows": [tuple(row) for row in (*step_forms(), *state_forms()) if "bounce" in row.form or "runs" in row.form],
    "wrong step": "did you mean" in refused("bonce 1") and "bounce" in refused("bonce 1"),
    "wrong state": "BROKER runs" in refused("wait until 1 walks"),
}))
"""
#: The story's last step, which waits for a broker that is dead.
IN_VAIN: Final = (
    'it did not play as written: line 6, "wait up to 1 s until 2 runs": waited 1000 ms without effect; '
    "2 runs: no, it is dead"
)


@pytest.mark.system
def test_a_step_and_a_state_that_are_classes_in_one_file_are_known_everywhere(tmp_path: Path) -> None:
    copied = shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    file = copied / "runs" / "stories" / "steps" / "faults.py"
    text = file.read_text().replace("import FAULTS, DropMessages", "import FAULTS, Kill, DropMessages")
    file.write_text(text.replace("import Step, WorldLimits", "import ScriptState, Step, WorldLimits") + CLASSES)
    assert answers_of(tmp_path, ASKED) == {
        "note": ["as good as new"],
        "disagreements": [IN_VAIN],
        "faults": ["kill"],
        "rows": [
            ["bounce BROKER...", "End its process, and start it again at once", ""],
            ["BROKER runs", "Its process runs", ""],
        ],
        "wrong step": True,
        "wrong state": True,
    }
