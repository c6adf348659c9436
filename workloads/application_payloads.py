"""The ids of an application's inputs, and the payloads that carry them.

An id names the input by itself: its log partition, its value, and a checksum of both, so that no other text is taken
for one: ``orders-0/1099511627776/5c1f09aa``. Nothing has to be remembered to know an input again.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from crc32c import crc32c

from workloads.application_ids import ID_WORD, number_of
from workloads.operations import PayloadDefect
from workloads.values import NO_VALUE

_ID: Final = re.compile(r"(.+-\d+)/(\d{1,19})/([0-9a-f]{8})")
#: The other words in a template of payloads that are replaced.
KEY_WORD, NUMBER_WORD = "{key}", "{number}"


class InputId(NamedTuple):
    """One input: the log partition that it was written to, and its value in the history."""

    partition: str
    value: int


def id_of(partition: str, value: int) -> str:
    """The id of the input ``value`` of ``partition`` ("topic-number")."""
    return f"{partition}/{value}/{crc32c(f'{partition}/{value}'.encode()):08x}"


def input_of(text: str) -> InputId | None:
    """The input that an id names; None where the text is no id."""
    match = _ID.fullmatch(text)
    if match is None or f"{crc32c(f'{match[1]}/{match[2]}'.encode()):08x}" != match[3]:
        return None
    return InputId(match[1], int(match[2]))


class Template:
    """The payloads of inputs, made from the text of a plan, and read back."""

    def __init__(self, text: str) -> None:
        self._text = text
        before, _, after = text.partition(ID_WORD)
        # The id is what stands between the words around it; what else a record says follows from it.
        self._id = re.compile(_any_words(before) + "(?P<id>.+?)" + _any_words(after), re.DOTALL)

    def payload(self, partition: str, key: bytes, value: int) -> bytes:
        """The payload of the input ``value``, meant for ``partition`` and ``key``."""
        words = ((ID_WORD, id_of(partition, value)), (KEY_WORD, key.decode()), (NUMBER_WORD, str(number_of(value))))
        text = self._text
        for word, instead in words:
            text = text.replace(word, instead)
        return text.encode()

    def decode(self, payload: bytes, partition: str, key: bytes) -> tuple[int, PayloadDefect]:
        """The value of a payload that was read from ``partition`` under ``key``, and its defect."""
        try:
            match = self._id.fullmatch(payload.decode())
        except UnicodeDecodeError:
            return NO_VALUE, PayloadDefect.UNREADABLE
        source = None if match is None else input_of(match["id"])
        if source is None:
            return NO_VALUE, PayloadDefect.UNREADABLE
        if source.partition != partition:
            return source.value, PayloadDefect.WRONG_PARTITION
        sound = payload == self.payload(partition, key, source.value)
        return source.value, PayloadDefect.NONE if sound else PayloadDefect.CHECKSUM


def _any_words(text: str) -> str:
    """A pattern of text that has anything in the places of the other words of a template."""
    return (
        re.escape(text)
        .replace(re.escape(KEY_WORD), ".*?")
        .replace(re.escape(NUMBER_WORD), r"\d+")
        .replace(re.escape(ID_WORD), ".+?")
    )
