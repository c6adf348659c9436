"""The plans of operators' own commands, act by act, with stand-ins for what they command; over real OpenSSH servers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.plan import parse_plan
from harness.plan.operator_commands import OperatorCommands
from harness.records.journal import Journal, not_undone
from harness.runs.run import heal_all
from harness.worlds.hosts import CommandedNodes
from nemesis.cluster import Link
from tests.harness.worlds.hosts import stand_ins
from tests.harness.worlds.hosts.stand_ins import StandIns

PLANS = Path(__file__).parents[4] / "plans" / "commands"
PATH = f"{os.environ['PATH']}:/usr/sbin"
SSHD = shutil.which("sshd", path=PATH)
OVER_SSH = [pytest.mark.system, pytest.mark.root]
UNDO = {"kill": "restart", "stop": "restart", "pause": "resume"}
SHOWS = {"kill": "exited", "stop": "exited", "pause": "paused"}
ALONE = [Link(*pair) for pair in ((0, 1), (1, 0), (0, 2), (2, 0))]


def commands_of(name: str) -> OperatorCommands:
    (world,) = parse_plan((PLANS / f"{name}.toml").read_text(), "p.toml").worlds
    return world.world.commands


class Broken:
    """Nodes that the commands of a plan break."""

    def __init__(self, directory: Path, plan: str) -> None:
        self.plan, self.commands, self.directory = plan, commands_of(plan), directory
        self.names = tuple(name for _, name in self.commands.nodes)
        self.programs = StandIns(directory, self.names)
        self.journal = Journal(directory / "journal.jsonl")
        self.nodes = CommandedNodes(self.commands, self.journal)

    def left(self) -> list[str]:
        return [undo.facts["act"] for undo in not_undone(self.journal.path)]


@pytest.fixture
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broken]:
    plan = request.param
    made = Broken(tmp_path, plan)
    monkeypatch.chdir(PLANS)
    monkeypatch.setenv("PATH", f"{made.programs.programs}:{PATH}")
    try:
        if plan == "systemd":
            if SSHD is None or os.geteuid() != 0:
                pytest.skip("needs root and sshd")
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists
            for name, text in (("systemctl", "SYSTEMCTL"), ("iptables", "IPTABLES"), ("sudo", "SUDO")):
                made.programs.put(name, getattr(stand_ins, text))
            for name in made.names:
                made.programs.machine(name, PATH)
            for name in made.names[:2]:
                made.programs.serve(name, SSHD)
        else:
            program = "docker" if plan == "docker-compose" else "kubectl"
            made.programs.put(program, getattr(stand_ins, program.upper()))
        yield made
    finally:
        made.journal.close()
        made.programs.close()


@pytest.mark.parametrize(
    ("broken", "act"),
    [
        *(("docker-compose", act) for act in UNDO),
        *(pytest.param("systemd", act, marks=OVER_SSH) for act in UNDO),
        ("kubernetes", "kill"),
    ],
    indirect=["broken"],
)
def test_a_node_is_broken_and_mended_as_the_plan_says(broken: Broken, act: str) -> None:
    evidence = getattr(broken.nodes, act)(0)
    assert evidence.get("state") == f"{act} observed", evidence
    assert broken.left() == [act]
    if broken.plan != "kubernetes":  # where the pod is made again at once
        assert [broken.programs.node(name) for name in broken.names] == [SHOWS[act], "running", "running"]
    mended = getattr(broken.nodes, UNDO[act])(0)
    assert mended.get("state"), mended
    broken.nodes.close()
    assert broken.left() == []
    assert broken.programs.node(broken.names[0]) == "running"


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ("docker-compose", ["kafka-0"]),
        ("kubernetes", ["kafka-0"]),
        pytest.param("systemd", ["0>1", "1>0"], marks=OVER_SSH),
    ],
    indirect=["broken"],
)
def test_links_are_cut_and_healed_as_the_plan_says(broken: Broken, named: list[str]) -> None:
    links = ALONE[:2] if len(named) == 2 else ALONE
    assert broken.nodes.cut(links) == {"filtered": named}
    assert len(list(broken.programs.state.glob("*.cut"))) == len(named)
    assert broken.nodes.heal(links) == {"filtered": named}
    assert list(broken.programs.state.glob("*.cut")) == []
    assert broken.left() == []


@pytest.mark.parametrize(
    "broken", ["docker-compose", "kubernetes", pytest.param("systemd", marks=OVER_SSH)], indirect=True
)
def test_what_cannot_be_asked_is_not_confirmed_and_is_healed_later(broken: Broken) -> None:
    """Without a daemon, without an API server, and on a machine without an SSH server."""
    away = broken.programs.state / "daemon-is-away"
    away.touch()
    node = 2 if broken.plan == "systemd" else 0
    evidence = broken.nodes.kill(node)
    assert "could not be observed" in evidence.get("unconfirmed", ""), evidence
    assert broken.left() == ["kill"]
    away.unlink()
    if node == 2:
        assert SSHD is not None
        broken.programs.serve(broken.names[2], SSHD)
    assert heal_all(broken.directory).remaining == []
    assert broken.left() == []
    assert broken.programs.node(broken.names[node]) == "running"
