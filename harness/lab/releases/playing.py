"""Plays a harm by the command that its page names, as a process of its own.

So the command repeats exactly what was played, and a play that hangs or fails ends alone. What a killed play left
behind is undone before the next one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, HostError
from harness.ground.machine.versions import own_version
from harness.lab.releases.harms import KnownHarm, words_of
from harness.records.release_file import ReleasePlay
from harness.runs.run import heal

#: Plays a harm once, for at most these seconds.
Player = Callable[[KnownHarm, float], ReleasePlay]
_PROGRAM: Final = (sys.executable, "-P", "-c", "from harness.cli.app import main; main()")
#: A play that is told to end undoes what it did.
_END_S: Final = 90.0
_VERDICTS: Final = {"shown": True, "not shown": False}


class StoppedError(Exception):
    """A play did not end in its time; it was ended, and what it did is undone."""


def command_player(release: str, patch: Path | None, work: Path, results: Path, lock: int) -> Player:
    """A player on this release, patched or not, by `ackproof` itself; its temporary files are in ``work``.

    Campaigns that showed something stay in ``results``. The open file ``lock`` is handed to each play, so that it is
    held as long as one lives, whatever became of its parent.
    """

    def play(harm: KnownHarm, limit_s: float) -> ReleasePlay:
        undo(work)
        words = words_of(harm, release, patch)
        run = results / harm.file.removesuffix(".json")
        if words[0] in {"campaign", "upgrade"}:
            shutil.rmtree(run, ignore_errors=True)
            words = (*words, "--out", str(run))
        begun_s = time.monotonic()
        words, read = (words, _of_upgrade) if words[0] == "upgrade" else ((*words, "--json"), _READERS[words[0]])
        play = read(_ended(words, work, limit_s, lock))
        if play.shown is False:
            shutil.rmtree(run, ignore_errors=True)
        return msgspec.structs.replace(play, seconds=round(time.monotonic() - begun_s, 1), by=own_version())

    return play


def undo(work: Path) -> None:
    """Undo what a killed play left behind, and empty the directory.

    Raises:
        HostError: something is still there.
    """
    if work.is_dir():
        heal(work)
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)


def _ended(words: tuple[str, ...], work: Path, limit_s: float, lock: int) -> subprocess.CompletedProcess[str]:
    """The play after its end; SIGTERM and Ctrl-C are passed on to it."""
    process = subprocess.Popen(  # noqa: S603 - this program
        [*_PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(work.absolute())},
        pass_fds=(lock,),
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end(process)
        undo(work)
        raise StoppedError from None
    except BaseException:
        _end(process)
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, error)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


# --- what a command said ---------------------------------------------------------------------------------------------


def _of_finding(done: subprocess.CompletedProcess[str]) -> ReleasePlay:
    """A finding's own words: shown, not shown, or why not observed."""
    answer = _answers(done)
    if not answer:
        return _failed(done)
    (played,) = answer[0]["plays"]
    return ReleasePlay(shown=_VERDICTS.get(played["verdict"]), seen=tuple(played["seen"]), why=played["why"])


def _of_stories(done: subprocess.CompletedProcess[str]) -> ReleasePlay:
    """A story shows something where a step is unexplained, or the outcome otherwise than its file expects."""
    answers = _answers(done)
    if not answers or not answers[0]["steps"]:
        return _failed(done)
    compared = answers[0]
    wrong = [step for step in compared["steps"] if step["word"] == "unexplained"]
    seen = [f"step {step['number']}, {step['text']}: unexplained" for step in wrong[:1]]
    seen += compared["disagreements"] or ()
    steps = f"{len(compared['steps'])} steps were compared"
    return ReleasePlay(shown=bool(seen), seen=(*seen, steps))


def _of_campaign(done: subprocess.CompletedProcess[str]) -> ReleasePlay:
    """A campaign's verdict; it shows something where a promise was broken, by its exit code."""
    return _by_exit_code(done, [answer["verdict"]["sentence"] for answer in _answers(done)])


def _of_upgrade(done: subprocess.CompletedProcess[str]) -> ReleasePlay:
    """The sentence of a certificate; likewise."""
    return _by_exit_code(done, done.stdout.splitlines()[:1])


def _by_exit_code(done: subprocess.CompletedProcess[str], seen: Sequence[str]) -> ReleasePlay:
    if done.returncode in {EXIT_HELD, EXIT_BROKEN}:
        return ReleasePlay(shown=done.returncode == EXIT_BROKEN, seen=tuple(seen))
    if done.returncode == EXIT_UNKNOWN and seen:
        return ReleasePlay(shown=None, why=seen[0])
    return _failed(done)


def _answers(done: subprocess.CompletedProcess[str]) -> list[Any]:
    answers = []
    for line in done.stdout.splitlines():
        try:
            answers.append(msgspec.json.decode(line))
        except msgspec.DecodeError:
            return []
    return answers


def _failed(done: subprocess.CompletedProcess[str]) -> ReleasePlay:
    """The last words of a play that observed nothing; of one that left something behind, an error.

    Raises:
        HostError: something is not undone.
    """
    words = [line for line in done.stderr.splitlines() if line.startswith("ackproof: ")] or done.stderr.splitlines()
    why = words[-1].removeprefix("ackproof: ") if words else "it said nothing"
    if "was not undone" in why:
        raise HostError(why)
    return ReleasePlay(shown=None, why=f"{why} (exit code {done.returncode})")


_READERS: Final[Mapping[str, Callable[[subprocess.CompletedProcess[str]], ReleasePlay]]] = {
    "finding": _of_finding,
    "conform": _of_stories,
    "campaign": _of_campaign,
}
