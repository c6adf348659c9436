"""The command `ackproof explore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import convert, json, to_builtins
from msgspec.structs import replace

from harness.cli.numbers import WholeNumber, seconds_type
from harness.cli.terminal import Terminal, WordType, assigned, path_type, takes_json
from harness.cli.workers import workers_option
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, PlanError
from harness.ground.machine.versions import cores, own_version
from harness.lab.explore import (
    GROUP_RULES,
    PERMITTED,
    RULES,
    TRANSACTION_RULES,
    AnyScope,
    Limits,
    Result,
    ShownStep,
    column_of,
    exhaust,
    known_scopes,
    lost_in,
    rules_of,
    scope_named,
    step_lines,
    steps_of,
    story_text,
)
from harness.records.files import check_writable, files_of, write_file
from workloads import unknown_name

#: All that `--rule` takes, of whatever kind the scope is.
_RULES = tuple(dict.fromkeys([*RULES, PERMITTED, *TRANSACTION_RULES, *GROUP_RULES]))


@click.command()
@click.argument("scope", required=False)
@click.option("--list", "listed", is_flag=True, help="Only name the scopes, with their constants.")
@click.option("--constant", "constants", multiple=True, metavar="NAME=N", help="Another bound: records=2, crashes=1.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another setting: missed.epoch=kafka.")
@click.option("--bug", metavar="NAME", help="A planted bug: short for --set planted.bug=NAME.")
@workers_option
@click.option("--states", type=WholeNumber(1, 10**12), help="Stop after the level that has this number of states.")
@click.option("--seconds", type=seconds_type, help="Stop after this number of seconds.")
@click.option("--memory", type=WholeNumber(1, 10**9), help="Stop where a process has this number of MB.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    type=WordType("rule", _RULES),
    metavar="RULE",
    help=f"Look for a breach of this rule only; may be repeated: {', '.join(_RULES)}.",
)
@click.option("--story", "file", type=path_type, help="Write the counterexample as a story file, and perform it.")
@click.option("--names", is_flag=True, help="Count states that differ only in the numbers of brokers as different.")
@takes_json
def explore(
    terminal: Terminal,
    scope: str | None,
    *,
    listed: bool,
    constants: Sequence[str],
    settings: Sequence[str],
    bug: str | None,
    workers: int | None,
    states: int | None,
    seconds: float | None,
    memory: int | None,
    rules: Sequence[str],
    file: Path | None,
    names: bool,
) -> int:
    """Look at every state that the broker's core can reach.

    SCOPE says how many brokers, records and other things there are; without one the scopes are listed. Every
    interleaving of messages, timers, crashes and writes is tried, and the rules of --rule are checked in each state.
    Breadth first, so a counterexample is a shortest one. Exit code 1 with a counterexample, 2 where a limit ended the
    search before every state was seen, or where nothing was acknowledged in any.
    """
    if listed or scope is None:
        return _list(terminal)
    changed = assigned(settings, "--set") | ({"planted.bug": bug} if bug else {})
    chosen = scope_named(scope).varied(assigned(constants, "--constant"), changed)
    for rule in rules:
        if rule not in rules_of(chosen):
            raise PlanError(unknown_name("rule of this scope", rule, dict.fromkeys(rules_of(chosen))))
    chosen = replace(chosen, rules=tuple(rules) or chosen.rules)
    if file is not None:
        check_writable("--story", file)
    asked = {"states": states, "seconds": seconds, "memory_bytes": memory and memory << 20}
    limits = convert({name: limit for name, limit in asked.items() if limit is not None}, Limits)
    result = exhaust(
        chosen,
        limits=limits,
        workers=workers or cores(),
        merged=not names,
        level_done=lambda depth, count: terminal.note(f"depth {depth}: {count} states"),
    )
    steps = steps_of(chosen, result)
    lines = [f"{chosen.name}: {chosen.title}", *_broken(result), *step_lines(steps)]
    played = [] if file is None or not steps else [_story(chosen, result, file)]
    lines += [*played, "left out:", *(f"  {exclusion}" for exclusion in chosen.leaves_out()), _sentence(chosen, result)]
    terminal.answer(_answer(chosen, result, steps, played), lines)
    if result.broken is not None:
        return EXIT_BROKEN
    return EXIT_HELD if result.exhausted and result.acknowledged else EXIT_UNKNOWN


def _answer(chosen: AnyScope, result: Result, steps: Sequence[ShownStep], played: Sequence[str]) -> dict[str, object]:
    """The result for programs; the report of a campaign reads it too."""
    return {
        "scope": chosen,
        "settings": chosen.in_effect,
        "version": own_version(),
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "seconds": result.seconds,
        "processor_seconds": result.processor_seconds,
        "exhausted": result.exhausted,
        "acknowledged": result.acknowledged,
        "permitted": result.permitted,
        "stopped": result.stopped,
        "broken": result.broken,
        "steps": steps,
        "story": played[0] if played else "",
        "left_out": chosen.leaves_out(),
    }


def _story(scope: AnyScope, result: Result, file: Path) -> str:
    """Write the counterexample down as a story; the answer has its outcome, if it was performed."""
    text = story_text(scope, result)
    if text is None:
        return "no story: the story language has no words for one of these steps"
    lost, column = lost_in(text, scope), column_of(scope)
    with files_of(file):
        write_file(file, text.encode())
    came = f"loses {', '.join(lost)}" if lost else "loses nothing: it does not do what these steps do"
    return f"as a story: {file}; performed in column {column} it {came}"


def _list(terminal: Terminal) -> int:
    scopes = known_scopes()
    if terminal.as_json:
        terminal.json(list(scopes.values()))
        return EXIT_HELD
    for scope in scopes.values():
        usual = to_builtins(type(scope.constants)())
        chosen = to_builtins(scope.constants)
        changed = {name: value for name, value in chosen.items() if value != usual[name]} | scope.settings
        values = [f"{name}={json.encode(value).decode()}" for name, value in changed.items()]
        terminal.say(f"{scope.name}  {scope.title}: {', '.join(values) or 'constants as by default'}")
    return EXIT_HELD


def _broken(result: Result) -> list[str]:
    if result.broken is None:
        return []
    name, text = result.broken
    return [f"{name} is broken after {len(result.trace)} steps: {text}"]


def _sentence(scope: AnyScope, result: Result) -> str:
    rate = result.states / result.processor_seconds if result.processor_seconds else 0.0
    counted = (
        f"{result.states} distinct states, {result.transitions} transitions, depth {result.depth}, "
        f"{result.seconds:.1f} s, {result.processor_seconds:.1f} s of processor time, "
        f"{rate:.0f} states a second of it"
    )
    if result.broken is not None:
        return f"broken: {result.broken[0]} in scope {scope.name} ({counted})"
    if result.exhausted and not result.acknowledged:
        return f"nothing was acknowledged, so nothing could be lost, in scope {scope.name} ({counted})"
    if result.exhausted:
        lost = f"; in some a record is lost whose last copy may have been destroyed (--rule {PERMITTED} shows one)"
        return f"held in all {result.states} states of scope {scope.name}{lost * result.permitted} ({counted})"
    return f"not exhausted: {result.stopped} ended the search of scope {scope.name} ({counted})"
