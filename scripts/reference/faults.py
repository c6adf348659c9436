"""The page of faults and families, from the classes of :mod:`nemesis.faults` and :mod:`nemesis.scenarios`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.plan import parse_plan
from harness.plan.listed_runs import RENAMED
from harness.runs.stories import form_of
from harness.worlds.limits import out_of_reach
from nemesis.cluster import CLIENTS, CONTROLLER, Capability
from nemesis.faults import FAULTS, KINDS, Fault, LinkFault
from nemesis.roles import RoleKind
from nemesis.scenarios import FAMILIES, Family, Scenario
from nemesis.topology import Shape, links_of
from scripts.reference.markdown import bullets, in_markdown, page, table, wrapped

_MACHINES: Final = ", ".join(f'{{node = {node}, address = "m{node}", user = "a"}}' for node in (0, 1, 2, 100))
#: The worlds with their hosts, and the table of a plan that asks for each.
WORLDS: Final = {
    "simulated": "[worlds.simulated]",
    "processes": "[worlds.processes]",
    "processes, namespaces": '[worlds.processes]\nhost = "namespaces"',
    "kafka": "[worlds.kafka]",
    "kafka, namespaces": '[worlds.kafka]\nhost = "namespaces"',
    "kafka, ssh": f'[worlds.kafka]\nhost = "ssh"\ninventory = {{machines = [{_MACHINES}]}}',
    "kafka, existing": '[worlds.kafka]\nhost = "existing"\nbootstrap = ["m0:9092"]',
}
#: The facts about a kind that decide what promises hold, in words.
FACTS: Final = {
    "ends_process": "It ends the processes of the nodes that it hits.",
    "may_end_process": "A process that it hit may end by itself afterwards.",
    "stops_brokers": "Its brokers count against `dead_brokers_max`.",
    "destroys_copy": "It destroys copies: it may take records that a replica had counted as its own.",
    "spares_flushed": "What was forced to the disk survives.",
    "empties_disk": "Nothing is left on the disk.",
    "replaces_replica": "Another broker may replicate a log partition because of it.",
    "spares_cluster": "It touches no broker and no link.",
}
_WHOM: Final = {
    RoleKind.FOLLOWER: "a follower",
    RoleKind.ISR_MEMBER: "an in-sync replica",
    RoleKind.BROKER: "a broker",
    RoleKind.RACK: "a rack",
    RoleKind.NAMED: "every broker",
    RoleKind.PRODUCER: "a producer",
}
INTRODUCTION: Final = """
A plan draws faults by [family](#families) (`families = ["kill"]`), lists them one by one
([`[[schedule]]`](plan-keys.md#schedule)), or performs a script of them ([stories](stories.md)). A fault that cannot be
done is skipped, and its receipt says why.

An empty cell of this table means that the world cannot do the fault; the entry of the fault says why.
"""
FAMILIES_INTRODUCTION: Final = """
A family is a set of scenarios. A scenario is one to a few faults with times that follow from the settings. Chance draws
among them; `[faults] scenarios = ["S09", "kill/leader-ahead"]` chooses. The first scenario opens each schedule. Those
*on request* are performed only if a plan names them.
"""


def faults() -> str:
    """Every fault with what the worlds can do of it, then every family with its scenarios."""
    lacks = {world: _lacks(text) for world, text in WORLDS.items()}
    rows = [
        (
            f"[`{kind.kind}`](#{kind.kind})",
            *("" if lacked & {*kind.needs} else "yes" for lacked in map(set, lacks.values())),
        )
        for kind in FAULTS
    ]
    unplanned = [kind for kind in KINDS.values() if not issubclass(kind, Fault)]
    return page(
        "Faults",
        "`nemesis/faults/` and `nemesis/scenarios/`",
        wrapped(INTRODUCTION.strip()),
        table(["fault", *WORLDS], rows),
        *(block for kind in FAULTS for block in _fault(kind, lacks)),
        "## Without a plan",
        wrapped("Receipts name these kinds too; no plan asks for them."),
        bullets(f"`{kind.kind}`: {_text(kind)}" for kind in unplanned),
        "## Shapes",
        wrapped("Each shape cuts these links around broker 0 of three; `>` is one way."),
        table(["shape", "links"], ((f"`{shape.value}`", _links(shape)) for shape in Shape)),
        "## Families",
        wrapped(FAMILIES_INTRODUCTION.strip()),
        *(block for family in FAMILIES.values() for block in _family(family)),
    )


def _lacks(plan: str) -> Mapping[Capability, str]:
    return out_of_reach(parse_plan(plan, "page").runs()[0])


def _text(kind: type) -> str:
    return in_markdown(kind.__doc__ or "")


def _fault(kind: type[Fault], lacks: Mapping[str, Mapping[Capability, str]]) -> Iterator[str]:
    yield f"## {kind.kind}"
    yield wrapped(_text(kind))
    yield bullets(_facts(kind, lacks))


def _facts(kind: type[Fault], lacks: Mapping[str, Mapping[Capability, str]]) -> Iterator[str]:
    if kind.operands:
        undone = f", undone by `{kind.undone_by.verb}`" if kind.lasts else ""
        yield f"In a script: `{form_of(kind)}`{undone}."
    fields = [RENAMED.get((kind.kind, field), field) for field in kind.__struct_fields__ if field != "role"]
    if fields:
        shapes = " ([shapes](#shapes))" if "shape" in fields else ""
        yield f"Fields: {', '.join(f'`{field}`' for field in fields)}{shapes}."
    yield f"Family: [`{kind.family}`](#the-family-{kind.family})."
    if not kind.lasts:
        yield "It is over at once, and nothing undoes it."
    yield from (words for name, words in FACTS.items() if getattr(kind, name))
    reasons: dict[str, list[str]] = {}
    for world, missing in lacks.items():
        if reason := next((missing[need] for need in kind.needs if need in missing), ""):
            reasons.setdefault(reason.partition(";")[0], []).append(world)
    yield from (f"Not in {' and '.join(f'`{world}`' for world in worlds)}: {why}." for why, worlds in reasons.items())


def _links(shape: Shape) -> str:
    names = {CONTROLLER: "controller", CLIENTS: "clients"}
    pairs = sorted((link.source, link.target) for link in links_of(shape, range(3), [0]))
    both = [(source, target) for source, target in pairs if source < target and (target, source) in pairs]
    one_way = [pair for pair in pairs if pair not in both and pair[::-1] not in both]
    shown = [(sign, pair) for sign, chosen in (("-", both), (">", one_way)) for pair in chosen]
    return ", ".join(f"`{sign.join(str(names.get(node, node)) for node in pair)}`" for sign, pair in shown)


def _family(family: Family) -> Iterator[str]:
    yield f"### The family {family.name}"
    yield wrapped(family.about or _text(next(kind for kind in FAULTS if kind.family == family.name)))
    rows = [
        (f"`{scenario.name}`", scenario.number, "" if scenario in family.scenarios else "on request", _script(scenario))
        for scenario in family.every_scenario
    ]
    yield table(["scenario", "number", "drawn", "faults, in order of their begin"], rows)


def _script(scenario: Scenario) -> str:
    parts = sorted(scenario.parts_of_any_scene(), key=lambda part: part.begin_ms)
    return "; ".join(dict.fromkeys(_act(part.fault) for part in parts))


def _act(fault: Fault) -> str:
    whom = _WHOM.get(fault.role.kind, f"the {fault.role.kind.value}")
    return f"`{fault.verb}` " + (f"{fault.shape.value} around {whom}" if isinstance(fault, LinkFault) else whom)
