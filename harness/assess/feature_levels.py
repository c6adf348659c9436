"""Reads levels of features from what Kafka's tools print: `kafka-features.sh describe`, and listings of topics.

An upgrade raises no feature, so a release does not tell them (KIP-584).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from harness.assess.rules_in_force import ELR_FEATURE, METADATA_FEATURE

#: Every level of metadata.version by name, from the first on; brokers know them as numbers (MetadataVersion.java).
_METADATA: Final = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1",
    "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0",
    "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)  # fmt: skip
_FEATURE: Final = re.compile(r"^\s*Feature:\s*(\S+)\s.*?FinalizedVersionLevel:\s*(\S+)", re.MULTILINE)
_NAMED: Final = re.compile(r"(\d+)\.(\d+)-IV(\d+)")


def levels_in(text: str) -> dict[str, int]:
    """The level of each feature in the text of `kafka-features.sh describe`; none where it is another text.

    Raises:
        ValueError: a level is no number and no name of one.
    """
    return {name: _level(name, level) for name, level in _FEATURE.findall(text)}


def levels_listed(fields: Mapping[str, str]) -> dict[str, int]:
    """The features that a row of a log partition shows to be in use: one with eligible replicas has the list of them.

    An empty list shows nothing: it is printed where the feature is off, too.
    """
    return {ELR_FEATURE: 1} if re.fullmatch(r"\d+(,\d+)*", fields.get("Elr", "")) else {}


def _level(feature: str, text: str) -> int:
    if text.isdigit():
        return int(text)
    if feature == METADATA_FEATURE and (match := _NAMED.fullmatch(text)):
        if text in _METADATA:
            return _METADATA.index(text) + 1
        newest = _NAMED.fullmatch(_METADATA[-1])
        if newest is not None and tuple(map(int, match.groups())) > tuple(map(int, newest.groups())):
            return len(_METADATA) + 1
    raise ValueError(f"{feature} has the level {text}, which is no number and no name of one")
