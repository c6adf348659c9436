"""Slow links on a host whose nodes have interfaces of their own: rates, and delays, in the kernel's queueing (``tc``).

Nothing of it is journalled: a qdisc stands on an interface that the journal knows, and ends with it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from harness.errors import HostError
from harness.hosts import tc
from nemesis.cluster import Evidence, Link

_COMMAND_LIMIT_S: Final = 10.0


class Interface(NamedTuple):
    """Where a node's packets leave: the device, and its network namespace (empty for the harness's own)."""

    namespace: str
    device: str


def probe() -> str:
    """Find out what the kernel can, on a loopback interface of a namespace that ends with the command.

    The answer is the leaf for slow classes: one that delays where the kernel has it.

    Raises:
        HostError: what is missing.
    """
    for tool, package in (("tc", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(tool) is None:
            raise HostError(f"slow links need the command {tool}; install the package {package}")
    _try(tc.FIFO)
    try:
        _try(tc.LATE)
    except HostError:
        return tc.FIFO
    return tc.LATE


def _try(leaf: str) -> None:
    _run(["unshare", "--net", "tc", "-batch", "-"], tc.rules("lo", [0], {0: "127.0.0.1"}, leaf))


class Shaper:
    """The slow links of a run. ``interfaces`` and ``addresses`` are by node, the clients' among them.

    ``leaf`` is what :func:`probe` found.
    """

    def __init__(self, interfaces: Mapping[int, Interface], addresses: Mapping[int, str], leaf: str) -> None:
        self._interfaces = interfaces
        self._addresses = addresses
        self._leaf = leaf
        self._slow: set[Link] = set()
        self._passed: dict[Link, dict[str, int]] = {}

    def slow(self, links: Collection[Link]) -> Evidence:
        """Deliver little at a time over these links, and late where the kernel can.

        Evidence: ``kbit`` by link, and ``delay_ms`` by link, as the kernel now has them; none of what it has not.
        """
        new = set(links) - self._slow
        self._keep_counts(new)
        self._passed.update({link: {} for link in new})
        self._slow |= new
        self._enforce(new)
        there = {Link(source, target): tc.RATE_KBIT for source in _sources(links) for target in self._seen(source)}
        late = {Link(source, target): ms for source in _sources(links) for target, ms in self._late(source).items()}
        evidence = {
            name: {_name(link): by_link[link] for link in sorted(set(links) & by_link.keys())}
            for name, by_link in (("kbit", there), ("delay_ms", late))
        }
        return {name: by_link for name, by_link in evidence.items() if by_link}

    def restore(self, links: Collection[Link]) -> Evidence:
        """Deliver as before. Evidence: ``passed`` by link since it became slow: bytes, and how often one waited."""
        slow = self._slow & set(links)
        self._keep_counts(slow)
        self._slow -= slow
        self._enforce(slow)
        return {"passed": {_name(link): self._passed.pop(link) for link in sorted(slow)}} if slow else {}

    def _keep_counts(self, links: Collection[Link]) -> None:
        """Add up what the rules have counted that are to be made anew, which begin at 0."""
        for source in _sources(links):
            for target, counted in self._seen(source).items():
                passed = self._passed.setdefault(Link(source, target), {})
                passed.update({name: passed.get(name, 0) + number for name, number in counted.items()})

    def _enforce(self, links: Collection[Link]) -> None:
        """Make the rules of every source concerned anew; what waits in the old ones is lost, and TCP sends it again."""
        for source in _sources(links):
            interface = self._interfaces[source]
            targets = [link.target for link in self._slow if link.source == source]
            subprocess.run(  # noqa: S603 - there is nothing to clear the first time
                self._tc(interface, "-batch", "-"), input=tc.clearing(interface.device), check=False,
                capture_output=True, text=True, timeout=_COMMAND_LIMIT_S,
            )  # fmt: skip
            if targets:
                rules = tc.rules(interface.device, targets, self._addresses, self._leaf)
                _run(self._tc(interface, "-batch", "-"), rules)

    def _seen(self, source: int) -> dict[int, dict[str, int]]:
        interface = self._interfaces[source]
        return tc.seen(_run(self._tc(interface, "-s", "class", "show", "dev", interface.device)))

    def _late(self, source: int) -> dict[int, int]:
        interface = self._interfaces[source]
        return tc.delays_ms(_run(self._tc(interface, "qdisc", "show", "dev", interface.device)))

    def _tc(self, interface: Interface, *words: str) -> list[str]:
        namespace = ["-n", interface.namespace] if interface.namespace else []
        return ["tc", *namespace, *words]


def _sources(links: Collection[Link]) -> list[int]:
    return sorted({link.source for link in links})


def _name(link: Link) -> str:
    return f"{link.source}>{link.target}"


def _run(command: list[str], text: str | None = None) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and names of this harness's own making
            command, input=text, check=True, capture_output=True, text=True, timeout=_COMMAND_LIMIT_S
        )
    except subprocess.CalledProcessError as error:
        raise HostError(
            f'slow links cannot be had here: "{" ".join(command)}" failed ({error.stderr.strip()})'
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f'slow links cannot be had here: "{" ".join(command)}" did not work ({error})') from error
    return done.stdout
