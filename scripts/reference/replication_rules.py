"""The page of replication rules, from ``harness/broker/core/rules.toml`` and the invariants beside it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from harness.broker.core import invariants
from harness.broker.core.planted import WRONG
from harness.runs.stories import known_stories
from scripts.reference.markdown import bullets, first_sentence, page, table, wrapped

INTRODUCTION: Final = """
The reference broker follows these rules. Code and tests cite "rule N" of this page. A source is a Kafka improvement
proposal (KIP), an issue (KAFKA-n) or the file of Apache Kafka that holds the rule. *Since* is the first release in
which Kafka behaves so. Where a rule changed with time, a switch, which is a setting, selects its form
([settings](settings.md)); `era` sets them all as one release had them.

Each leader of a partition has a number, the *leader epoch*, and each change of its state has one, the *partition
epoch*. *Log end* is one past the last record, the *high watermark* one past the last committed one. The *committed ISR*
is the one that the controller has accepted. The *maximal ISR* is that plus the members that a leader has proposed and
has no answer for yet.
*Min ISR* is `min(min.insync.replicas, replication factor)`: a topic with fewer replicas than the setting asks for is
judged by its replicas (since 3.7, KAFKA-21110).

Scripted [stories](stories.md) show what a rule is for, with the outcome that each choice of settings must have.
`ackproof stories S09 --settings all/2/E --explain` goes through one step by step.
"""
INVARIANTS: Final = """
What no message, fault or order of events may bring about in one replica is asserted where it would happen. What needs
two nodes to be looked at together is an invariant. Simulated runs look at them while they go on
(`harness/worlds/simulated/invariants.py`): after each change of the controller's image, after each answer to a client,
and after what may have changed an epoch or shortened a log. A coordinator is looked at after each of its steps, a
cleaner and retention after each pass; what they know and leave is compared with what their logs say or said. Exhaustive
search looks in every state at those that its
option [`--rule`](commands.md#ackproof-explore) lists. Only it looks at `deleted-stay-deleted`, which readers of a
compacted topic show in runs. The first that a run breaks is the finding `broken-invariant`, which no settings permit;
tests break each of them on purpose.

"While committed records are kept" means: with the rules since 2.1, broker epochs and `missed.epoch = "forget"`, from
the last unclean election on. Where a number of replicas commits, it means elections by leader epoch and log end too,
and nothing is claimed once a disk has lost records. A broker whose disk lost records is left out until it is on no list
or has registered again. As the last member of an ISR it then stays left out (KAFKA-15495); with eligible leader
replicas only as the last known leader. Under rules 27 and 28 `high-watermark-is-committed` is not asked;
`committed-has-its-copies` is asked only there.
"""
PLANTED: Final = """
`planted.bug` puts one rule in a wrong form, to find out whether the checkers notice. It is `none` by default, and no
world of Apache Kafka takes another value. [Hunts](../guides/hunt.md) say what finds each of them.
"""
TESTS: Final = "tests/harness/broker/core"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule, as the file has it."""

    number: int
    text: str
    source: str
    switch: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules under one heading; the ``note`` follows them."""

    heading: str
    rule: tuple[Rule, ...] = ()
    note: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    section: tuple[Section, ...]


@cache
def sections() -> tuple[Section, ...]:
    """Every section of the file."""
    text = (resources.files("harness.broker.core") / "rules.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_File).section


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the page."""
    return tuple(rule for section in sections() for rule in section.rule)


def replication_rules() -> str:
    """Every rule with its source, its switch, its code, its tests and its stories; then the invariants."""
    blocks = [wrapped(INTRODUCTION.strip())]
    for section in sections():
        blocks.append(f"## {section.heading}")
        for rule in section.rule:
            blocks += [f"### Rule {rule.number}", rule.text.strip(), bullets(_facts(rule))]
        if section.note:
            blocks.append(section.note.strip())
    bugs = [
        (f"`{bug}`", f"`{part.__name__}`", first_sentence(wrong.__doc__ or "")) for (bug, part), wrong in WRONG.items()
    ]
    return page(
        "Replication rules",
        "`harness/broker/core/rules.toml`",
        *blocks,
        "## Invariants",
        wrapped(INVARIANTS.strip()),
        table(["invariant", "meaning", "holds"], _invariants()),
        "## Planted bugs",
        wrapped(PLANTED.strip()),
        table(["bug", "in", "wrong form"], bugs),
    )


def _facts(rule: Rule) -> Iterator[str]:
    yield f"Source: {rule.source}."
    if rule.switch:
        yield f"Switch: {', '.join(f'`{name}`' for name in rule.switch)}."
    if rule.code:
        yield f"Code: {', '.join(f'`{name}`' for name in rule.code)}."
    yield from (f"Test: `{test}`." for test in rule.tests)
    if told := [number for number, story in known_stories().items() if rule.number in _cited(story.source)]:
        yield f"Stories: {', '.join(f'[{number}](stories.md#{number.lower()})' for number in told)}."


def _cited(source: str) -> set[int]:
    """The numbers of "rules 1 and 10" and "rule 24"."""
    return {int(number) for words in re.findall(r"rules? ([\d, and]+)", source) for number in re.findall(r"\d+", words)}


def _invariants() -> Iterator[tuple[str, str, str]]:
    for name, function in inspect.getmembers(invariants, inspect.isfunction):
        if function.__annotations__.get("return") == "Broken | None":
            text = function.__doc__ or ""
            holds = (
                "while committed records are kept"
                if "committed records are kept" in " ".join(text.split())
                else "always"
            )
            yield f"`{name.replace('_', '-')}`", first_sentence(text), holds
