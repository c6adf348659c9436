"""Kills soaks, and fills their disks, and says whether each goes on and counts every run once.

python -m scripts.harmed_soaks killed [SECONDS...]    SIGKILL to all of it, by default at every 0.2 s of the first 15
python -m scripts.harmed_soaks filled [SECONDS...]    as root: its small disk is full from then on, until it has ended
python -m scripts.harmed_soaks night PLAN MINUTES KILLS DIRECTORY    one soak, killed at moments that chance draws

The first two play on the reference broker in virtual time and keep their table in results/reference/harmed-soaks/.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from harness.campaigns.soak.ledger import read_ledger
from scripts.expect import every_run_of_a_soak_counts_once
from scripts.reference.markdown import table

KEPT: Final = Path(__file__).parents[1] / "results" / "reference" / "harmed-soaks"
#: Two cells that hold and two with findings, so that there is something to keep, to drop and to try again.
PLAN: Final = """name = "harmed"
families = ["kill", "pause"]
[settings]
acks = "all"
min.insync.replicas = 2
[matrix]
planted.bug = ["none", "acknowledge-after-append"]
[worlds.simulated]
parallel = 1
workload = { writes_per_second = 20.0, duration_ms = 8_000 }
faults = { count = 2 }
"""
MOMENTS: Final = tuple(step / 5 for step in range(1, 76))
FILLED_MOMENTS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0)
#: Seconds of work, and of waiting for an end, which a machine with much to do needs.
FOR_S: Final = 20
LIMIT_S: Final = 300.0
#: Soaks at a time.
AT_A_TIME: Final = 4
#: Bytes of the small disk; runs and the report need about a tenth.
DISK_BYTES: Final = 40_000_000
#: Exit codes of a soak that was harmed: nothing is broken, something is, or it is not known.
JUDGED: Final = frozenset({0, 1, 2})


class HarmedSoak(NamedTuple):
    """A soak that was harmed: what was there by then, its ends, and what is wrong, "" if nothing."""

    at_s: float
    left: str
    ended: str
    resumed: str
    runs: int
    wrong: str


def ackproof(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command, in a process group of its own."""
    program = Path(sysconfig.get_path("scripts")) / "ackproof"
    return subprocess.Popen(
        [program, *arguments],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The exit code of a command, "hangs" if it does not end in time, and its last line on standard error."""
    try:
        _, said = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs", ""
    return str(process.returncode), (said.splitlines() or [""])[-1]


def left_in(soak: Path) -> str:
    """The files and entries of a soak so far, in words."""
    if not (soak / "soak.json").exists():
        return "the plan" if (soak / "plan.toml").exists() else "nothing"
    if not (soak / "ledger.jsonl").exists():
        return "the request"
    kinds = entries_of(soak)
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "an empty ledger"


def entries_of(soak: Path) -> list[str]:
    """The kinds of the entries of a soak's ledger."""
    return [type(entry).__name__.lower() for entry in read_ledger(soak)] if (soak / "ledger.jsonl").exists() else []


def sessions_of(soak: Path) -> int:
    """The number of sessions that have begun to work."""
    return entries_of(soak).count("began")


def living_in(soak: Path) -> list[str]:
    """The command lines of processes that work on this soak."""
    others = (process for process in psutil.process_iter(["pid", "cmdline"]) if process.pid != os.getpid())
    lines = (" ".join(process.info["cmdline"] or ()) for process in others)
    return [line for line in lines if str(soak) in line]


def wrong_with(soak: Path, code: str, sessions: int) -> Iterator[str]:
    """Say what is wrong with a harmed soak that has ended with ``code`` after this number of ``sessions``."""
    if int(code if code.isdigit() else -1) not in JUDGED:
        yield f"it ended with {code}"
        return
    yield from every_run_of_a_soak_counts_once(soak, sessions)
    yield from (f"{line[:80]} lives on" for line in living_in(soak))


def gone_on(soak: Path, plan: Path) -> tuple[str, str]:
    """Go on with a soak that was harmed as its user does: resume it, or begin it again if there is no request yet."""
    if (soak / "soak.json").exists():
        return ended(ackproof("soak", "--resume", soak))
    return ended(ackproof("soak", plan, "--for", f"{FOR_S}s", "--out", soak))


def harmed(soak: Path, plan: Path, at_s: float, harm: Callable[[subprocess.Popen[str]], str]) -> HarmedSoak:
    """Begin a soak, harm it after ``at_s`` seconds, and go on with it."""
    process = ackproof("soak", plan, "--for", f"{FOR_S}s", "--out", soak)
    with suppress(subprocess.TimeoutExpired):
        process.wait(at_s)
    code = harm(process)
    left, sessions = left_in(soak), sessions_of(soak)
    resumed, said = gone_on(soak, plan)
    wrong = "; ".join(wrong_with(soak, resumed, sessions + 1))
    matrix = soak / "matrix.json"
    runs = sum(cell["runs"] for cell in json.loads(matrix.read_bytes())["cells"]) if matrix.exists() else 0
    return HarmedSoak(at_s, left, code, resumed, runs, f"{wrong} ({said})" if wrong else "")


def killed(process: subprocess.Popen[str]) -> str:
    """SIGKILL to the soak and everything that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return "killed" if process.returncode < 0 else str(process.returncode)


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "ackproof", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


def filled(disk: Path) -> Callable[[subprocess.Popen[str]], str]:
    """The harm that takes all room of ``disk`` until the soak has ended, and then gives it back."""

    def fill(process: subprocess.Popen[str]) -> str:
        began = time.monotonic()
        with (disk / "filler").open("ab", buffering=0) as filler:
            while process.poll() is None and time.monotonic() - began < LIMIT_S:
                size = 1 << 20
                while size:
                    try:
                        filler.write(bytes(size))
                    except OSError:
                        size >>= 1
                time.sleep(0.02)
        code, said = ended(process)
        (disk / "filler").unlink()
        return f"{code} ({said[-120:]})" if said else code

    return fill


def kept_rows(name: str, moments: Sequence[float], harm: Callable[[float, Path, Path], HarmedSoak]) -> int:
    """Harm a soak at each moment, keep the table as it grows, and answer with the exit code."""

    def row_of(at_s: float) -> HarmedSoak:
        with tempfile.TemporaryDirectory(prefix="harmed-") as work:
            (plan := Path(work) / "harmed.toml").write_text(PLAN)
            return harm(at_s, Path(work), plan)

    KEPT.mkdir(exist_ok=True)
    head = ["after s", "there was", "it ended", "then it ended", "runs, each once", "wrong"]
    rows = []
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for row in map(Future.result, as_completed(pool.submit(row_of, at_s) for at_s in moments)):
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            rows.append([f"{row.at_s:.1f}", *map(str, row[1:5]), row.wrong or "nothing"])
            in_time = sorted(rows, key=lambda row: float(row[0]))
            (KEPT / f"{name}.md").write_text(table(head, in_time) + "\n")
    return 1 if any(row[-1] != "nothing" for row in rows) else 0


def night(plan: Path, minutes: float, kills: int, soak: Path) -> int:
    """One soak of some minutes whose process is killed some times, at moments that chance draws; the exit code."""
    chance = random.Random(str(soak))  # noqa: S311 - moments, no secrets
    moments = sorted(chance.uniform(20.0, 60.0 * minutes - 60.0) for _ in range(kills))
    began = time.monotonic()
    arguments: list[str | Path] = ["soak", plan, "--for", f"{minutes:.0f}m", "--out", soak]
    for at_s in moments:
        process = ackproof(*arguments)
        try:
            process.wait(max(1.0, began + at_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        arguments = ["soak", "--resume", soak]
        sys.stdout.write(f"{time.monotonic() - began:.0f} s: {process.returncode}, {left_in(soak)}\n")
        sys.stdout.flush()
    sessions = sessions_of(soak)
    process = ackproof(*arguments)
    _, said = process.communicate()
    wrong = list(wrong_with(soak, str(process.returncode), sessions + 1))
    sys.stdout.write(
        f"{time.monotonic() - began:.0f} s: {process.returncode}, {left_in(soak)}\n{said[-500:]}\n{wrong}\n"
    )
    return 1 if wrong else 0


def main(harm: str, *arguments: str) -> int:
    """The exit code."""
    if harm == "night":
        plan, minutes, kills, soak = arguments
        return night(Path(plan), float(minutes), int(kills), Path(soak))
    moments = [float(word) for word in arguments]
    if harm == "killed":
        return kept_rows(harm, moments or MOMENTS, lambda at_s, work, plan: harmed(work / "soak", plan, at_s, killed))

    def on_small_disk(at_s: float, work: Path, plan: Path) -> HarmedSoak:
        with small_disk(work / "disk") as disk:
            return harmed(disk / "soak", plan, at_s, filled(disk))

    return kept_rows(harm, moments or FILLED_MOMENTS, on_small_disk)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
