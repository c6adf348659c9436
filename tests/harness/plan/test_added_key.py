"""A key that is added to the struct of its table is known everywhere: nothing else has to name it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
#: By file, the line before which a key is added, and the key.
ADDED: Final = {
    "workloads/plan.py": (
        "    poll_wait_ms: int = 250\n",
        '    nap_ms: Annotated[int, CountsIn("grouped"), Meta(ge=5)] = 70\n    """Sleep of a member."""\n',
    ),
    "nemesis/plan.py": (
        "    exercised_min: ",
        '    calm: Annotated[int, Meta(ge=1, le=9, description="nobody is calmer")] = 3\n    """Calm of faults."""\n',
    ),
}
#: A plan for each fact about the keys, and the answer to it.
GROUPS: Final = '[settings]\nacks = 1\ngroup.protocol = "consumer"\n[worlds.simulated]\n'
SAID: Final = {
    f'workload = {{ name = "groups", nap_ms = 8 }}\nfaults.calm = 4\nschedule = []\n{GROUPS}': "read again",
    'workload = { name = "groups", nap_ms = 4 }\n' + GROUPS: "workload.nap_ms: 4 is too small; the least is 5",
    'workload = { name = "groups", nap_ms = 90_000_000 }\n' + GROUPS: (
        "workload.nap_ms: 90000000 is too large; the most is 86400000: a run lasts a day at most, and ackproof soak "
        "repeats runs for longer"
    ),
    f"faults.calm = 10\n{GROUPS}": "faults.calm: 10 is too large; the most is 9: nobody is calmer",
    f"faults.calm = true\n{GROUPS}": "faults.calm: takes a whole number, not true",
    f"faults.clam = 2\n{GROUPS}": 'faults.clam: unknown key "clam"; did you mean "calm"?',
    f"nap_ms = 8\n{GROUPS}": "nap_ms: this key does not belong here; write it under [workload]",
    f"{GROUPS}calm = 2": "worlds.simulated.calm: this key does not belong here; write it under [faults]",
    f"workload.nap_ms = 8\n{GROUPS}": (
        'workload.nap_ms: does nothing in the workload "steady"; write name = "groups" or "consume-transform-produce" '
        "under [workload], or leave this key out"
    ),
}
PERFORMED: Final = """
import json, sys
from harness.ground.errors import PlanError
from harness.plan import parse_plan, plan_text
from scripts.reference.plan_keys import plan_keys

def said(text):
    try:
        (run, *_) = parse_plan(text, "p").runs()
    except PlanError as error:
        return str(error).removeprefix("p: ")
    (again,) = parse_plan(plan_text(run, "again"), "again").runs()
    kept = (again.workload.nap_ms, again.faults.calm) == (run.workload.nap_ms, run.faults.calm) == (8, 4)
    return "read again" if kept else "lost"

json.dump({"page": plan_keys(), "said": {text: said(text) for text in json.load(sys.stdin)}}, sys.stdout)
"""


@pytest.fixture(scope="module")
def with_keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The answers of a process in which each of the two structs has one key more."""
    copy = tmp_path_factory.mktemp("source")
    for file, (before, key) in ADDED.items():
        package = file.partition("/")[0]
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        source = (copy / file).read_text(encoding="utf-8")
        assert source.count(before) == 1
        (copy / file).write_text(source.replace(before, key + before), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PERFORMED],
        input=json.dumps([*SAID]),
        capture_output=True,
        text=True,
        check=True,
        cwd=copy,
        env={"PYTHONPATH": f"{copy}:{ROOT}", "PATH": ""},
    )
    return dict(json.loads(done.stdout))


def test_an_added_key_is_read_written_back_bounded_and_refused_where_it_does_not_belong(with_keys) -> None:
    assert with_keys["said"] == SAID


def test_an_added_key_is_on_the_page_with_its_default_and_its_bounds(with_keys) -> None:
    for line in (
        "- `nap_ms` (70): Sleep of a member.",
        "- `calm` (3): Calm of faults.",
        "| `calm` | 1 | 9 | nobody is calmer |",
        "| `nap_ms` | 5 | 86,400,000 | a run lasts a day at most, and ackproof soak repeats runs for longer |",
    ):
        assert line in with_keys["page"].splitlines()
