"""Slow links and wrong clocks of one run: the parts of its target that need the host's help, or the reason why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.errors import HostError
from harness.hosts import shaping
from harness.hosts.clocks import Clocks, steps_in
from harness.hosts.contract import Host
from harness.hosts.local import LocalHost
from harness.hosts.namespaces import NamespaceHost
from harness.hosts.shaping import Shaper
from harness.worlds.contract import Observation
from nemesis.cluster import Evidence, Link

#: Longer than any run; clocks are wrong by more than this, or by seconds.
RUN_US: Final = 3_600_000_000
_NO_INTERFACES: Final = 'links are slowed down with host = "namespaces" only, which needs root'
_ELSEWHERE: Final = "clocks are set on this machine only"
#: Kinds of fault by the family that asks for what they need.
_FAMILIES: Final = {"slow-link": "slowlink", "clock": "clockstep"}


class Shaping:
    """What was asked for and can be had. ``lacks`` are the kinds of fault that cannot, with the reason."""

    def __init__(self, shaper: Shaper | None, clocks: Clocks | None, lacks: Mapping[str, str]) -> None:
        self.lacks: Final = dict(lacks)
        self._shaper = shaper
        self._clocks = clocks

    def environment(self, node: int) -> dict[str, str]:
        """What a node needs in its environment; nothing unless its clock may be set."""
        return self._clocks.environment(node) if self._clocks is not None else {}

    def slow_links(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.slow_links`. Evidence: ``kbit`` and, where the kernel has it, ``delay_ms`` by link."""
        return self._shaper.slow(links) if self._shaper is not None else {}

    def restore_link_speed(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.restore_link_speed`. Evidence: bytes that ``passed``, and how often packets waited."""
        return self._shaper.restore_link_speed(links) if self._shaper is not None else {}

    def set_clock(self, node: int, offset_ms: int) -> Evidence:
        """See :meth:`Target.set_clock`. Evidence: ``offset_ms``; the node's own clock follows within two seconds."""
        return self._clocks.set(node, offset_ms) if self._clocks is not None else {}


def rightly_timed(told: Iterable[Observation], directory: Path) -> list[Observation]:
    """What nodes told of themselves, by the right clock: a node whose clock was wrong wrote down the wrong time.

    ``directory`` holds the files of the run's clocks. A time that is far outside the run is brought back by that of the
    node's offsets which explains it best; a drift of seconds cannot be told from the truth, and stays.
    """
    steps = steps_in(directory)
    if not steps:
        return list(told)
    shifted = (
        msgspec.structs.replace(seen, time_us=seen.time_us - _wrong_by_us(seen, steps.get(seen.node, [])))
        for seen in told
    )
    return sorted(shifted, key=lambda seen: seen.time_us)


def _wrong_by_us(seen: Observation, offsets_ms: Sequence[int]) -> int:
    if abs(seen.time_us) < RUN_US:
        return 0
    return min((0, *(offset * 1_000 for offset in offsets_ms)), key=lambda offset_us: abs(seen.time_us - offset_us))


NO_SHAPING: Final = Shaping(None, None, dict.fromkeys(_FAMILIES.values(), "not to be had in this world"))


def shaping_for(host: Host, families: Sequence[str], directory: Path) -> Shaping:
    """What these fault families ask of this host; what they do not ask for is neither probed nor prepared."""
    lacks = {kind: f"no {family} fault was planned" for family, kind in _FAMILIES.items() if family not in families}
    shaper = clocks = None
    try:
        shaper = _shaper(host) if "slow-link" in families else None
    except HostError as error:
        lacks["slowlink"] = str(error)
    try:
        clocks = _clocks(host, directory) if "clock" in families else None
    except HostError as error:
        lacks["clockstep"] = str(error)
    return Shaping(shaper, clocks, lacks)


def _shaper(host: Host) -> Shaper:
    if not isinstance(host, NamespaceHost):
        raise HostError(_NO_INTERFACES)
    leaf = shaping.probe()
    return Shaper(host.interfaces(), host.addresses(), leaf)


def _clocks(host: Host, directory: Path) -> Clocks:
    if not isinstance(host, LocalHost):
        raise HostError(_ELSEWHERE)
    made = Clocks(directory)
    made.make()
    return made
