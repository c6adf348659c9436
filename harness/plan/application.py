"""The table ``[application]`` of a plan: read, and refused where nothing could be judged.

The table is :class:`workloads.ApplicationPlan`; it makes the workload `application`, and that workload needs it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

import msgspec

from harness.plan.model import Plan, WorldPlan
from harness.plan.values import PlanKey, Table, record_of
from workloads import ID_WORD, ApplicationPlan, WorkloadPlan, finder, kind_of, shown, topics_of

#: The name of the workload.
APPLICATION: Final = "application"
_LACKING: Final = '{key} is missing; write the command that starts one instance: command = "python my_loop.py"'
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
#: The words that are replaced in a command and in the environment.
PLACEHOLDERS: Final = (
    "bootstrap", "instance", "input", "output", "group", "directory", "session_timeout_ms", "transaction_timeout_ms",
)  # fmt: skip


def application_of(table: Table, plan_key: PlanKey) -> ApplicationPlan | None:
    """The application of a plan; None for an empty table."""
    if not table:
        return None
    plain = {**table}
    for key in ("command", "effects"):
        if key in plain:
            plain[key] = words_of(plain[key], plan_key / key)
    if isinstance(plain.get("output"), str):
        plain["output"] = [plain["output"]]
    application = record_of(ApplicationPlan, plain, plan_key, _LACKING)
    _refuse_unknown_words(application, plan_key)
    if (port := application.ready.removeprefix("port:")) != application.ready:
        if not (port.isdecimal() and 0 < int(port) < 2**16):
            raise (plan_key / "ready").wrong(f'{shown(application.ready)} names no port; write "port:8080"')
    else:
        try:
            re.compile(application.ready)
        except re.error as error:
            raise (plan_key / "ready").wrong(f"this is no regular expression: {error}") from error
    _refuse_places(application, plan_key)
    _refuse_shape(application, table, plan_key)
    return application


def words_of(value: object, plan_key: PlanKey) -> list[str]:
    """The words of a command, which is a string or a list of strings."""
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise plan_key.wrong(f"these are not the words of a command: {error}") from error
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = value
    else:
        raise plan_key.wrong(f"takes a string of words, or a list of strings, not {shown(value)}")
    if not words or not words[0]:
        raise plan_key.wrong("write a command; no shell reads it, so write sh -c '...' for one that needs it")
    return words


def _refuse_places(application: ApplicationPlan, plan_key: PlanKey) -> None:
    """Refuse a payload without an id, and places in which no id or result can be."""
    if application.payload.count(ID_WORD) != 1:
        raise (plan_key / "payload").wrong(f"the payload has {ID_WORD} once, so that an output can name its input")
    for key, where, what in (("id", application.id, "an id"), ("result", application.result, "a result")):
        try:
            finder(where)
        except ValueError as error:
            raise (plan_key / key).wrong(f"{shown(where)} is no place of {what}: {error}") from error
    if application.id == "key" and (application.order == "key" or application.shape == "fold"):
        raise (plan_key / "id").wrong(
            'with id = "key" each input has a key of its own, so no two could be out of order, or folded; write '
            '"json:/id", "header:NAME" or "regex:EXPRESSION"'
        )


def _refuse_shape(application: ApplicationPlan, table: Table, plan_key: PlanKey) -> None:
    """Refuse keys that mean nothing with the application's shape."""
    if application.shape == "none" and application.output:
        raise (plan_key / "output").wrong('with shape = "none" the application writes to no topic; leave output out')
    if application.shape == "none" and application.order == "key" and not application.effects:
        raise (plan_key / "order").wrong("nothing tells the order of what it did; write effects, or leave order out")
    for key, shape in (
        ("outputs_each", "many"),
        ("every", "some"),
        ("fold", "fold"),
        ("result", "fold"),
        ("effects", "none"),
    ):
        if key in table and application.shape != shape:
            raise (plan_key / key).wrong(f'counts with shape = "{shape}" only; write that, or leave {key} out')


def with_application(
    workload: WorkloadPlan, application: ApplicationPlan | None, own: Mapping[str, object]
) -> WorkloadPlan:
    """The workload with its application, whose name it has where the plan names none; ``own`` are its tables' keys."""
    if application is None:
        return workload
    name = workload.name if "name" in own else APPLICATION
    return msgspec.structs.replace(workload, name=name, application=application)


def check_applications(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse an application without its workload, or a workload without an application, and what it cannot do.

    Raises:
        PlanError: one sentence.
    """
    for world in plan.worlds:
        here = plan_key / "worlds" / world.world.name
        applied = kind_of(world.workload).applied
        if not applied and world.workload.application is not None:
            raise (here / "workload" / "name").wrong(
                f'[application] is of the workload "{APPLICATION}", not of "{world.workload.name}"; leave one out'
            )
        if applied and world.workload.application is None:
            raise (plan_key / APPLICATION).wrong(
                f'the workload "{APPLICATION}" needs a program; write [application] with its command'
            )
        if applied:
            _refuse_world(plan, world, plan_key)
        _refuse_no_instance(plan, world, plan_key / "families")


def _refuse_world(plan: Plan, world: WorldPlan, plan_key: PlanKey) -> None:
    here = plan_key / "worlds" / world.world.name
    if world.world.virtual_time:
        raise here.wrong(
            "a program of yours runs in real time; write it under [worlds.processes], which needs no Kafka, or "
            "[worlds.kafka]"
        )
    if world.workload.application is not None:
        _refuse_level(plan, world.workload.application, plan_key)
    if plan.story or world.workload.writes:
        raise (plan_key / APPLICATION).wrong("a story, and a list of writes, have no application; leave it out")
    topics = topics_of(world.workload)
    for topic in topics[len(world.workload.topic_names) :]:
        if topic in world.workload.topic_names:
            raise (plan_key / APPLICATION / "output").wrong(
                f"{shown(topic)} is an input too, so outputs would be read as inputs; write another topic"
            )
        if topics.count(topic) > 1:
            raise (plan_key / APPLICATION / "output").wrong(f"{shown(topic)} is there twice; write it once")


def _refuse_level(plan: Plan, application: ApplicationPlan, plan_key: PlanKey) -> None:
    """Refuse a promise that no application keeps to readers who see what was aborted."""
    for choice in plan.choices:
        if (
            application.promise == "exactly-once"
            and application.shape != "none"
            and choice.settings["isolation.level"] != "read_committed"
        ):
            raise (plan_key / "settings").wrong(
                'promise = "exactly-once" is one to readers of committed records, and readers of uncommitted records '
                'see the outputs of aborted transactions; write isolation.level = "read_committed"'
            )


def _refuse_no_instance(plan: Plan, world: WorldPlan, plan_key: PlanKey) -> None:
    """Refuse faults of instances in a plan without an application."""
    families = [name for name in "+".join(plan.families).split("+") if name.startswith("instance-")]
    if families and world.workload.application is None and plan.schedule is None:
        raise plan_key.wrong(
            f"{families[0]} strikes instances of an application, and the plan has none; write [application], or leave "
            "the family out"
        )


def _refuse_unknown_words(application: ApplicationPlan, plan_key: PlanKey) -> None:
    """Refuse a placeholder that nothing replaces: the program would be given it as it is."""
    texts = [(key, word) for key in ("command", "effects") for word in getattr(application, key)]
    texts += [("environment", content) for content in application.environment.values()]
    for key, text in texts:
        for name in _PLACEHOLDER.findall(text):
            if name not in PLACEHOLDERS:
                there_are = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                raise (plan_key / key).wrong(f"{{{name}}} is not replaced by anything; there are {there_are}")
