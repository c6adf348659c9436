"""Slow links and wrong clocks of one run: the parts of its target that need the host's help."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.errors import HostError
from harness.hosts import Clocks, Host, LocalHost, NamespaceHost, Shaper, probe_slow_links, steps_in
from harness.observations import Observation
from harness.worlds.processes.nodes import Nodes
from nemesis.cluster import Evidence, Link

#: Longer than any run; clocks are wrong by more than this, or by seconds.
RUN_US: Final = 3_600_000_000
_NO_INTERFACES: Final = 'links are slowed down with host = "namespaces" only, which needs root'
_ELSEWHERE: Final = "clocks are set on this machine only"


class SlowLinks:
    """Implements :class:`nemesis.cluster.LinkSpeed` for ``nodes``, of which every controller has links of its own."""

    def __init__(self, shaper: Shaper, nodes: Nodes) -> None:
        self._shaper = shaper
        self._nodes = nodes

    def slow(self, links: Collection[Link]) -> Evidence:
        """See :meth:`LinkSpeed.slow`. Evidence: ``kbit`` and, where the kernel has it, ``delay_ms`` by link."""
        return self._shaper.slow(self._nodes.single_links(links))

    def restore(self, links: Collection[Link]) -> Evidence:
        """See :meth:`LinkSpeed.restore`. Evidence: bytes that ``passed``, and how often packets waited."""
        return self._shaper.restore(self._nodes.single_links(links))


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


def slow_links(host: Host, nodes: Nodes) -> SlowLinks:
    """The speed of the links between ``nodes``.

    Raises:
        HostError: links cannot be slowed down here.
    """
    if not isinstance(host, NamespaceHost):
        raise HostError(_NO_INTERFACES)
    leaf = probe_slow_links()
    return SlowLinks(Shaper(host.interfaces(), host.addresses(), leaf), nodes)


def wall_clocks(host: Host, directory: Path) -> Clocks:
    """Wall clocks that can be wrong; their files stand in ``directory``.

    Raises:
        HostError: clocks cannot be set here.
    """
    if not isinstance(host, LocalHost):
        raise HostError(_ELSEWHERE)
    made = Clocks(directory)
    made.make()
    return made
