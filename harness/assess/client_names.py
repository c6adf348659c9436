"""The names of settings that clients have: a name that none has is a slip, and must not be passed over in silence."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib import resources
from typing import Final

import msgspec
from kafka import KafkaConsumer, KafkaProducer

from harness.assess.client_settings import ALIASES

#: A name is taken for a slip of another that is at least so alike.
_ALIKE: Final = 0.75
#: Whole families of names about the way in, of which none decides anything here.
_FAMILIES: Final = ("ssl.", "sasl.", "security.", "metric", "log.", "config.providers", "plugin.", "interceptor")


_KINDS: Final = {"--producer": "producer", "--consumer": "consumer"}
_PYTHON: Final = {"--producer": KafkaProducer.DEFAULT_CONFIG, "--consumer": KafkaConsumer.DEFAULT_CONFIG}


@cache
def _names(option: str) -> frozenset[str]:
    """The settings of Kafka's own clients, librdkafka and kafka-python that ``option`` names."""
    text = resources.files("harness.assess").joinpath("client_names.toml").read_text(encoding="utf-8")
    written = msgspec.convert(tomllib.loads(text), dict[str, list[str]])
    return frozenset(
        {*written["both"], *written[_KINDS[option]], *(name.replace("_", ".") for name in _PYTHON[option])}
    )


def known(name: str, option: str) -> bool:
    """True if a client that ``option`` names can have the setting ``name``, which is written with dots."""
    return name in _names(option) or ALIASES.get(name) in _names(option) or name.startswith(_FAMILIES)


def stranger(name: str, option: str) -> str:
    """The sentence about a setting that no such client has, with the nearest that one has."""
    (other,) = _KINDS.keys() - {option}
    said = f"no {_KINDS[option]} has a setting {name}"
    if name in _names(other):
        return f"{said}; a {_KINDS[other]} has it: write {other}"
    near = nearest(name, option)
    return f"{said}; did you mean {near}?" if near else f"{said}; correct its name, or leave it out"


def nearest(name: str, option: str) -> str:
    """The nearest setting that such a client has; empty where none is near."""
    near = difflib.get_close_matches(name.lower(), _names(option), n=1, cutoff=_ALIKE)
    return near[0] if near else ""
