"""Prints what became of a run of each portfolio and of a few exhaustive searches, by modules of the form that is named.

What was compiled must print the same as its source. Scopes with keys, sequence numbers and coordinators are among them,
and some that end with a counterexample.

    ACKPROOF_COMPILED=no .venv/bin/python -m scripts.compiled_probe source
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from harness.compiled import form_of_modules
from harness.explore import exhaust, scope_named
from harness.search import EVERYTHING, run_in_memory

SCOPES: Final = ("silent", "wiped", "retried", "compacted", "compacted-late", "late-marker/1", "group-moved")
SEED: Final = 1


def lines() -> Iterator[str]:
    """A line a run and a search."""
    for number, portfolio in enumerate(EVERYTHING):
        judged = run_in_memory(portfolio.spec(SEED, number, {}))
        outcome = [judged.recording, judged.verdict, judged.receipts, judged.broken]
        yield f"{portfolio.name} {sha256(msgspec.json.encode(outcome, enc_hook=str)).hexdigest()}"
    for name in SCOPES:
        result = exhaust(scope_named(name))
        counts = f"{result.states} states, {result.transitions} transitions, {result.core_steps} steps of the core"
        yield f"{name} {counts}, depth {result.depth}, {result.broken}"


if __name__ == "__main__":
    if form_of_modules() != sys.argv[1]:
        sys.exit(f"the modules in use are {form_of_modules()}")
    sys.stdout.writelines(f"{line}\n" for line in lines())
