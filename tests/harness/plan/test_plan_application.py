"""The table [application] of plans, and what is refused of it with a sentence that says what to write."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.plan import Plan, parse_plan
from workloads import topics_of

APPLICATION = '[application]\ncommand = "loop {bootstrap} {input}"\n'
SETTINGS = '[settings]\nisolation.level = "read_committed"\n'


def plan(
    application: str = APPLICATION, *, top: str = "", settings: str = SETTINGS, rest: str = "[worlds.processes]\n"
) -> Plan:
    return parse_plan(f"{top}\n{application}{settings}{rest}", "p.toml")


def problem(application: str = APPLICATION, **tables: str) -> str:
    with pytest.raises(PlanError) as refused:
        plan(application, **tables)
    return str(refused.value)


def test_a_plan_with_an_application_has_its_workload_with_an_output_of_its_own() -> None:
    (world,) = plan().worlds
    assert world.workload.name == "application"
    assert world.workload.application is not None
    assert world.workload.application.command == ("loop", "{bootstrap}", "{input}")
    assert topics_of(world.workload) == ("ackproof", "ackproof-out")
    (other,) = plan(APPLICATION + 'output = "results"\n').worlds
    assert topics_of(other.workload) == ("ackproof", "results")


def test_a_command_is_words_as_a_shell_splits_them_or_a_list() -> None:
    listed = '[application]\ncommand = ["sh", "-c", "a b"]\n'
    quoted = "[application]\ncommand = \"sh -c 'a b'\"\n"
    for text in (listed, quoted):
        (world,) = plan(text).worlds
        assert world.workload.application is not None
        assert world.workload.application.command == ("sh", "-c", "a b")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "p.toml: application: command is missing; write the command that starts one instance"),
        ('command = ""', "application.command: write a command; no shell reads it"),
        ("command = 3", "application.command: takes a string of words, or a list of strings, not 3"),
        ('command = "a \'b"', "application.command: these are not the words of a command"),
        ('command = "a {topic}"', "application.command: {topic} is not replaced by anything; there are {bootstrap},"),
        ('command = "a"\nenvironment = { X = "{y}" }', "application.environment: {y} is not replaced by anything"),
        ('command = "a"\ninstances = 0', "application.instances: 0 is too small"),
        ('command = "a"\npayload = "no id"', "application.payload: the payload has {id} once"),
        ('command = "a"\npayload = "{id} {id}"', "application.payload: the payload has {id} once"),
        ('command = "a"\nid = "offset"', 'application.id: "offset" is no place of an id: write "key", "header:NAME"'),
        ('command = "a"\nid = "json:id"', 'no place of an id: a path begins with a slash: "json:/id"'),
        ('command = "a"\nready = "port:x"', 'application.ready: "port:x" names no port; write "port:8080"'),
        ('command = "a"\nready = "("', "application.ready: this is no regular expression"),
        ('command = "a"\nshape = "all"', 'application.shape: takes one of "each", "many", "some", "fold", "none"'),
        ('command = "a"\noutputs_each = 3', 'application.outputs_each: counts with shape = "many" only'),
        ('command = "a"\nfold = "sum"', 'application.fold: counts with shape = "fold" only'),
        ('command = "a"\nshape = "fold"\nfold = "max"', 'application.fold: takes one of "count", "sum", "last"'),
        ('command = "a"\nshape = "fold"\nresult = "x"', 'application.result: "x" is no place of a result: write "key"'),
        ('command = "a"\nshape = "fold"\nid = "key"', 'with id = "key" each input has a key of its own'),
        ('command = "a"\norder = "key"\nid = "key"', 'with id = "key" each input has a key of its own'),
        ('command = "a"\norder = "time"', 'application.order: takes one of "none", "key"'),
        ('command = "a"\neffects = "b"', 'application.effects: counts with shape = "none" only'),
        ('command = "a"\nshape = "none"\noutput = "b"', "application writes to no topic; leave output out"),
        ('command = "a"\nshape = "none"\norder = "key"', "nothing tells the order of what it did; write effects"),
        ('command = "a"\nshape = "none"\neffects = ""', "application.effects: write a command"),
        ('command = "a"\noutput = ["b", "b"]', '"b" is there twice; write it once'),
        ('command = "a"\nevery = 3', 'application.every: counts with shape = "some" only'),
        ('command = "a"\npromise = "always"', 'application.promise: takes one of "exactly-once"'),
        ('command = "a"\noutput = "ackproof"', '"ackproof" is an input too, so outputs would be read as inputs'),
        ('command = "a"\noutput = "a b"', "cannot name a topic"),
        ('command = "a"\ncomand = "b"', 'application.comand: unknown key "comand"; did you mean "command"?'),
    ],
)
def test_a_wrong_application_is_refused_with_what_to_write(line: str, words: str) -> None:
    assert words in problem(f"[application]\n{line or 'instances = 1'}\n")


def test_an_application_needs_real_time() -> None:
    assert "a program of yours runs in real time; write it under [worlds.processes]" in problem(
        rest="[worlds.simulated]\n"
    )


def test_an_application_and_another_workload_exclude_each_other() -> None:
    assert '[application] is of the workload "application", not of "steady"; leave one out' in problem(
        rest='[workload]\nname = "steady"\n[worlds.processes]\n'
    )
    assert 'the workload "application" needs a program; write [application] with its command' in problem(
        "", rest='[workload]\nname = "application"\n[worlds.processes]\n'
    )


def test_exactly_once_is_a_promise_to_readers_of_committed_records() -> None:
    words = "readers of uncommitted records see the outputs of aborted transactions"
    assert words in problem(settings="")
    plan(APPLICATION + 'promise = "at-least-once"\n', settings="")
    plan(APPLICATION + 'promise = "at-most-once"\n', settings="")


def test_faults_of_instances_need_instances() -> None:
    words = "instance-kill strikes instances of an application, and the plan has none; write [application]"
    assert words in problem("", top='families = ["kill+instance-kill"]')
    plan(top='families = ["kill+instance-kill"]')


def test_an_application_may_have_several_inputs_and_outputs_and_a_sink_has_no_output() -> None:
    text = APPLICATION + 'output = ["a", "b"]\n'
    (world,) = plan(text, rest="[workload]\ntopics = 2\n[worlds.processes]\n").worlds
    assert topics_of(world.workload) == ("ackproof", "ackproof.2", "a", "b")
    (world,) = plan(APPLICATION + 'shape = "none"\neffects = "cat {directory}/done"\n', settings="").worlds
    assert topics_of(world.workload) == ("ackproof",)
    assert world.workload.application is not None
    assert world.workload.application.effects == ("cat", "{directory}/done")
