"""Forms of lines. A form is a grammar and its own documentation.

In ``"write NEW:record to BROKER:to [as NAME:producer]"`` a word in capitals is a slot: ``BROKER:to`` reads a broker
into the field ``to``. Brackets hold what may be left out. Every other word is written as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nemesis.cluster import Capability

SLOT: Final = re.compile(r"([A-Z]+):(\w+)")


class Slot(NamedTuple):
    """A place in a form: the ``kind`` of words that belong there, and the field that they are."""

    kind: str
    field: str


class Form(NamedTuple):
    """One way to write a line: what it ``makes``, the ``pattern``, its ``meaning``, and the fields ``fixed`` by it.

    ``needs`` are the parts of a target that it uses.
    """

    makes: type[Any]
    pattern: str
    meaning: str
    needs: tuple[Capability, ...] = ()
    fixed: Mapping[str, object] = {}

    @property
    def verb(self) -> str:
        """The first word."""
        return self.pattern.partition(" ")[0]


def slots_of(pattern: str) -> list[Slot]:
    """The slots of a form, from left to right."""
    return [Slot(*slot.groups()) for slot in SLOT.finditer(pattern)]


def written_as(pattern: str, values: Mapping[str, str]) -> str:
    """The line of this form with ``values`` in its slots, by field; an empty one may be left out there."""
    return " ".join(SLOT.sub(lambda slot: values[slot[2]], pattern.replace("[", "").replace("]", "")).split())
