"""The rows of the reference of steps and states: form, meaning, and the worlds that have it."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from harness.plan import parse_plan
from harness.runs.stories.script.language import shown
from harness.runs.stories.steps import STATES, STEPS, Form
from harness.worlds.limits import out_of_reach
from nemesis.cluster import Capability
from nemesis.faults import Fault

#: The worlds in which a script can be performed, with the table of a plan for each.
_WORLDS: Final = {
    "virtual time": "[worlds.simulated]",
    "processes": "[worlds.processes]",
    "Kafka": "[worlds.kafka]",
    "processes in namespaces": '[worlds.processes]\nhost = "namespaces"',
    "Kafka in namespaces": '[worlds.kafka]\nhost = "namespaces"',
}


class StepForm(NamedTuple):
    """A row: how a step, or a state, is written, its meaning in a sentence, and the worlds that have it, if not all."""

    form: str
    meaning: str
    limits: str


def step_forms() -> list[StepForm]:
    """Every step of the language, in the order of its documentation."""
    return [StepForm(shown(form), form.meaning, _limits(form)) for form in STEPS]


def form_of(fault: type[Fault]) -> str:
    """The step that begins ``fault``; empty where scripts have none."""
    return next((shown(form) for form in STEPS if form.fixed.get("fault") is fault), "")


def state_forms() -> list[StepForm]:
    """Every state that a step can wait for."""
    return [StepForm(shown(form), form.meaning, _limits(form)) for form in STATES]


def _limits(form: Form) -> str:
    if form.makes.limits:
        return str(form.makes.limits)
    without = [world for world in _WORLDS if not _lacked(world).isdisjoint(form.needs)]
    if "virtual time" in without:
        return "real nodes only"
    if len(without) == len(_WORLDS) - 1:
        return "virtual time only"
    nodes = "real nodes" if "processes" in without else "Kafka"
    return f"{nodes} only in namespaces" if without else ""


@cache
def _lacked(world: str) -> frozenset[Capability]:
    plan = parse_plan(f'families = ["kill"]\n{_WORLDS[world]}\n', world)
    return frozenset(out_of_reach(plan.runs()[0]))
