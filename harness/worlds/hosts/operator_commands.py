"""Breaks and mends nodes elsewhere by an operator's own commands, and believes only what another one observes.

Every act is in the journal before its command runs, as ``operator-command``: the command that undoes it, what observes
that, and the mark that the command's processes carry, so that one that is still under way is ended before it is undone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from uuid import uuid4

import msgspec

from harness.ground.errors import HostError, NotUndoneError
from harness.plan import NODE, PEER, UNDONE_BY, Act, OperatorCommands
from harness.records.journal import Journal
from harness.worlds.hosts.processes import TOKEN_VARIABLE, end, marked_with
from nemesis.cluster import Link, Links, NodeProcesses, link_name
from nemesis.evidence import Killed, LinksCut, ProcessSeen
from workloads import reason_of

KIND: Final = "operator-command"
#: Between two looks at what a command has done.
LOOK_EVERY_S: Final = 0.2
#: A broker takes its time to come back, and the workload waits while a command is looked at: longer than this only when
#: the run ends.
MENDED_S: Final = 1.0
#: Characters of a command's output that are quoted.
QUOTED_MAX: Final = 200

Words = tuple[str, ...]


class CommandEnd(NamedTuple):
    """The end of a command: its exit code, None where it has none, and the end of what it printed, or why."""

    code: int | None
    words: str


#: Runs a command for at most a number of seconds; its processes carry the mark, if there is one.
Call = Callable[[Words, float, str], CommandEnd]


class Undoing(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of an entry in the journal: the act and its node, and how to undo it.

    ``last_resort`` is the act that restarts everything, empty without one.
    """

    act: str
    node: str
    token: str
    undo: Act
    directory: str
    limit_s: float
    last_resort: Act | None = None


def call(words: Words, limit_s: float, token: str = "", *, directory: str = ".") -> CommandEnd:
    """Run a command in ``directory`` to its end. One that hangs is ended, with all that it started in its session."""
    environment = os.environ | ({TOKEN_VARIABLE: token} if token else {})
    with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as what the command leaves running
        try:
            child = subprocess.Popen(  # noqa: S603 - the operator's own command
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            return CommandEnd(None, f"{words[0]} cannot be started: {reason_of(error)}")
        try:
            code: int | None = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        printed = " ".join(output.read().decode(errors="replace").split())[-QUOTED_MAX:]
    return CommandEnd(code, printed if code is not None else f"no end within {limit_s:g} s; {printed}".rstrip("; "))


class CommandedNodes(NodeProcesses, Links):
    """Nodes that ``commands`` break and mend. ``run`` performs a command; a rehearsal only shows it."""

    def __init__(self, commands: OperatorCommands, journal: Journal, run: Call = call) -> None:
        self._commands, self._journal, self._run = commands, journal, run
        self._open: dict[int, Undoing] = {}

    def kill(self, node: int) -> Killed:
        """Run the command ``kill``."""
        return cast("Killed", self._break("kill", self._named(node)))

    def stop(self, node: int) -> ProcessSeen:
        """Run the command ``stop``."""
        return self._break("stop", self._named(node))

    def pause(self, node: int) -> ProcessSeen:
        """Run the command ``pause``."""
        return self._break("pause", self._named(node))

    def restart(self, node: int) -> ProcessSeen:
        """Run the command ``start`` for what was killed or stopped."""
        return self._mend("start", self._named(node))

    def resume(self, node: int) -> ProcessSeen:
        """Run the command ``resume`` for what was paused."""
        return self._mend("resume", self._named(node))

    def cut(self, links: Collection[Link]) -> LinksCut:
        """Run the command ``cut`` for each link, or for each node that loses all its links to others."""
        seen = [name for name, who in self._cuttable(links) if "state" in self._break("cut", who)]
        return {"filtered": seen} if seen else {}

    def heal(self, links: Collection[Link]) -> LinksCut:
        """Run the command ``heal`` for what is cut of these links."""
        mended = [name for name, who in self._cuttable(links) if "state" in self._mend("heal", who)]
        return {"filtered": mended} if mended else {}

    def close(self) -> None:
        """Undo all that is not undone, the newest first. Idempotent.

        Raises:
            NotUndoneError: something could not be; the journal keeps it.
        """
        left = []
        for entry, undoing in sorted(self._open.items(), reverse=True):
            try:
                undo_command(msgspec.structs.asdict(undoing), self._run)
            except HostError as error:
                left.append(str(error))
            else:
                self._done(entry)
        if left:
            raise NotUndoneError(left)

    def _named(self, node: int) -> Mapping[str, str]:
        name = self._commands.name(node)
        return {} if name is None else {NODE: name}

    def _cuttable(self, links: Collection[Link]) -> list[tuple[str, Mapping[str, str]]]:
        """The name and the words of each link that the command can cut, or of each node that it isolates."""
        act = self._commands.acts["cut"]
        own_links = [link for link in sorted(links) if all(map(self._commands.name, link))]
        if any(PEER in word for word in act.run):
            return [
                (link_name(link), {**self._named(link[0]), PEER: str(self._commands.name(link[1]))})
                for link in own_links
            ]
        nodes = sorted(dict(self._commands.nodes))
        alone = [
            node
            for node in nodes
            if all({Link(node, other), Link(other, node)} <= set(own_links) for other in nodes if other != node)
        ]
        return [(str(self._commands.name(node)), self._named(node)) for node in alone]

    def _break(self, act: str, who: Mapping[str, str]) -> ProcessSeen:
        commands = self._commands
        if act not in commands.acts or not who:
            return {"refused": f"the plan has no command {act} for this node"}
        undo = UNDONE_BY[act]
        name = " to ".join(who.values())
        self._look_again(name)
        if any(open_.node == name and open_.act == act for open_ in self._open.values()):
            return {}
        last = commands.acts.get("restart_all")
        undoing = Undoing(
            act=act,
            node=name,
            token=uuid4().hex,
            undo=_of(commands.acts[undo], who),
            directory=str(Path.cwd()),
            limit_s=commands.limit_s,
            last_resort=last,
        )
        entry = self._journal.intend(KIND, msgspec.to_builtins(undoing))
        self._open[entry] = undoing
        own = _of(commands.acts[act], who)
        ended = self._run(own.run, commands.limit_s, undoing.token)
        seen = observed(own.observe, commands.limit_s if ended.code == 0 else 0, commands.limit_s, self._run)
        return _evidence(act, ended, seen)

    def _mend(self, undo: str, who: Mapping[str, str]) -> ProcessSeen:
        name = " to ".join(who.values())
        evidence: ProcessSeen = {}
        for entry, undoing in list(self._open.items()):
            if undoing.node != name or UNDONE_BY[undoing.act] != undo:
                continue
            ended = self._run(undoing.undo.run, undoing.limit_s, "")
            seen = observed(undoing.undo.observe, min(undoing.limit_s, MENDED_S), undoing.limit_s, self._run)
            evidence = _evidence(undo, ended, seen)
            if seen.code == 0:
                self._done(entry)
        return evidence

    def _look_again(self, name: str) -> None:
        """Look whether what was mended has come back by now: a broker that was started takes its time."""
        for entry, undoing in list(self._open.items()):
            if undoing.node == name and self._run(undoing.undo.observe, undoing.limit_s, "").code == 0:
                self._done(entry)

    def _done(self, entry: int) -> None:
        self._journal.done(entry)
        self._open.pop(entry, None)


def _of(act: Act, who: Mapping[str, str]) -> Act:
    """The act with the names of nodes in its words; a name never becomes more than one word."""
    return Act(run=_filled(act.run, who), observe=_filled(act.observe, who))


def _filled(words: Iterable[str], who: Mapping[str, str]) -> Words:
    filled = []
    for word in words:
        for placeholder, name in who.items():
            word = word.replace(placeholder, name)  # noqa: PLW2901 - one after the other
        filled.append(word)
    return tuple(filled)


def observed(words: Words, wait_s: float, limit_s: float, run: Call) -> CommandEnd:
    """Look, at least once, until it took effect or ``wait_s`` is over; the answer is the last one.

    One look may take ``limit_s``.
    """
    until = time.monotonic() + wait_s
    while True:
        answer = run(words, limit_s, "")
        if answer.code == 0 or time.monotonic() + LOOK_EVERY_S >= until:
            return answer
        time.sleep(LOOK_EVERY_S)


def _evidence(act: str, ended: CommandEnd, seen: CommandEnd) -> ProcessSeen:
    """Turn what was seen into evidence, whatever the command itself said."""
    code = "no exit code" if ended.code is None else f"exit code {ended.code}"
    said = f"{act}: {code}{f' ({ended.words})' if ended.words and ended.code != 0 else ''}"
    if seen.code == 0:
        return {"state": f"{act} observed", "words": seen.words or said}
    if seen.code == 1:
        return {"refused": f"{said}, and the observation contradicts it{f' ({seen.words})' if seen.words else ''}"}
    return {"unconfirmed": f"{said}, and it could not be observed ({seen.words or f'exit code {seen.code}'})"}


def undo_command(facts: Mapping[str, Any], run: Call | None = None) -> list[str]:
    """Undo an act of the journal: end what is still under way, run what undoes it, and look.

    Raises:
        HostError: it is not seen to be undone.
        msgspec.ValidationError: these are no facts of such an act.
    """
    undoing = msgspec.convert(facts, Undoing)
    for process in list(marked_with(undoing.token)):
        end(process)
    what, limit_s = f"{undoing.act} of {undoing.node}", undoing.limit_s
    run = run or partial(call, directory=undoing.directory)
    if run(undoing.undo.observe, limit_s, "").code == 0:
        return []
    ended = run(undoing.undo.run, limit_s, "")
    seen = observed(undoing.undo.observe, limit_s, limit_s, run)
    if seen.code != 0 and undoing.last_resort is not None:
        run(undoing.last_resort.run, limit_s, "")
        if observed(undoing.last_resort.observe, limit_s, limit_s, run).code == 0:
            seen = observed(undoing.undo.observe, limit_s, limit_s, run)
    if seen.code == 0:
        return [what]
    evidence = _evidence("undo", ended, seen)
    raise HostError(f"{what}: {evidence.get('refused') or evidence.get('unconfirmed')}")
