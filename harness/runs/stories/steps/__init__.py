"""The steps and the states of scripts, by subject. A new one is a class in a module of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final

from harness.runs.stories.steps import faults, groups, reads, transactions, waits, writes
from harness.runs.stories.steps.form import Form as Form
from harness.runs.stories.steps.step import InScript
from harness.runs.stories.steps.step import ScriptState as ScriptState
from harness.runs.stories.steps.step import Step as Step


def _forms(base: type[InScript], *modules: ModuleType) -> Iterator[Form]:
    """The forms of the classes of ``base`` that these modules define, in the order of their definition."""
    for module in modules:
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__:
                yield from kind.forms()


#: Every step, in the order of the documentation.
STEPS: Final = tuple(_forms(Step, writes, reads, transactions, groups, waits, faults))
#: Every state that a step can wait for: of two that fit the same words the first one is meant.
STATES: Final = tuple(_forms(ScriptState, waits, transactions, groups, writes, reads, faults))
#: The forms of each verb.
VERBS: Final[Mapping[str, tuple[Form, ...]]] = {
    verb: tuple(form for form in STEPS if form.verb == verb) for verb in dict.fromkeys(form.verb for form in STEPS)
}
