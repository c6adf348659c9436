"""The facts of a run in the options of its exported history, so that it is judged as the run was."""

from __future__ import annotations

from typing import Final

import msgspec

from checkers.verdicts.verdict import RunFacts
from workloads import Settings, SettingsError
from workloads.history import HistoryError, Origin

#: The option's name.
RUN: Final = "run"


def run_of(origin: Origin) -> RunFacts | None:
    """The facts of the run that a history is of; None where it does not say them.

    Raises:
        HistoryError: they are no facts of a run, or settings that cannot work.
    """
    if (told := origin.options.get(RUN)) is None:
        return None
    try:
        facts = msgspec.convert(told, type=RunFacts)
        Settings.from_mapping(facts.settings)
    except (msgspec.ValidationError, SettingsError) as error:
        why = f"the option run of the history is not what a run of ackproof says ({error}); remove it, or export again"
        raise HistoryError(why) from error
    return facts
