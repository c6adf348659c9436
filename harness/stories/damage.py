"""What a script does to a cluster, and what of it has to be undone at its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from harness.stories.steps import Deed, Record
from harness.stories.story_world import StepError, StoryWorld
from nemesis.cluster import Capability, Evidence, Link, Target, node_name


class Damage:
    """Everything that was done so far. Each method raises a :class:`StepError` where the world cannot do it.

    ``abandoned`` are brokers that are not started again at the end.
    """

    def __init__(self, story_world: StoryWorld) -> None:
        self._story_world = story_world
        self._cut: set[Link] = set()
        self._filtered: set[Link] = set()
        self._paused: set[int] = set()
        self._lying: set[int] = set()
        self.abandoned: set[int] = set()

    @property
    def _target(self) -> Target:
        return self._story_world.target

    def do(self, deed: Deed, node: int) -> None:
        """Do ``deed`` to a broker.

        Raises:
            StepError: nothing happened, because the broker is in another state (a dead one cannot be killed).
        """
        if not self._doer(deed)(node):
            raise StepError(self._why_not(deed, node))
        if deed is Deed.PAUSE:
            self._paused.add(node)
        elif deed is Deed.LIE:
            self._lying.add(node)
        elif deed in {Deed.RESUME, Deed.KILL, Deed.STOP, Deed.POWER}:
            self._paused.discard(node)

    def _why_not(self, deed: Deed, node: int) -> str:
        running = node in self._story_world.running
        state = f"broker {node} {'runs' if running else 'is dead'}"
        if deed is Deed.START if running else deed in (Deed.KILL, Deed.STOP, Deed.POWER):
            return f"{state} already"
        return f"{state}, and {deed} changes nothing there"

    def _doer(self, deed: Deed) -> Callable[[int], Evidence]:
        if deed is Deed.POWER:
            return self._story_world.part(Capability.POWER, self._target.power).cut_power
        if deed is Deed.WIPE:
            return self._story_world.part(Capability.FILES, self._target.files).wipe
        if deed is Deed.LIE:
            return self._story_world.part(Capability.WRITE_CACHES, self._target.write_caches).lie
        if deed in (Deed.FAIL, Deed.REPLACE):
            directories = self._story_world.part(Capability.LOG_DIRECTORIES, self._target.log_directories)
            fail = partial(directories.fail, partition=self._story_world.partition)
            return fail if deed is Deed.FAIL else directories.replace
        if deed is Deed.FLUSH:
            return self._story_world.flush
        processes = self._story_world.part(Capability.PROCESSES, self._target.processes)
        deeds: Mapping[Deed, Callable[[int], Evidence]] = {
            Deed.KILL: processes.kill,
            Deed.STOP: processes.stop,
            Deed.START: processes.restart,
            Deed.PAUSE: processes.pause,
            Deed.RESUME: processes.resume,
        }
        return deeds[deed]

    def corrupt(self, record: Record, node: int) -> None:
        """Change one byte of a record on the disk of a dead broker."""
        files = self._story_world.part(Capability.FILES, self._target.files)
        if not files.corrupt(node, self._story_world.partition, self._story_world.pick_of(record, node)):
            raise StepError(f"nothing happened to the disk of broker {node}: is it dead?")

    def cut(self, links: Collection[Link]) -> None:
        """Deliver nothing over these links.

        Raises:
            StepError: nothing was observed, as where all of them are cut already.
        """
        _observed(self._story_world.part(Capability.LINKS, self._target.links).cut(links), "cut", links)
        self._cut |= set(links)

    def heal(self, links: Collection[Link]) -> None:
        """Deliver again over these links.

        Raises:
            StepError: nothing was observed, as where none of them is cut.
        """
        _observed(self._story_world.part(Capability.LINKS, self._target.links).heal(links), "healed", links)
        self._cut -= set(links)

    def drop(self, links: Collection[Link], api: str) -> None:
        """Throw away messages of ``api`` (empty: all). Raises as :meth:`cut`."""
        _observed(self._story_world.part(Capability.MESSAGES, self._target.messages).drop(links, api), "dropped", links)
        self._filtered |= set(links)

    def hold(self, links: Collection[Link], api: str) -> None:
        """Keep messages of ``api`` (empty: all). Raises as :meth:`cut`."""
        _observed(self._story_world.part(Capability.MESSAGES, self._target.messages).hold(links, api), "held", links)
        self._filtered |= set(links)

    def release(self, links: Collection[Link]) -> None:
        """End drops and holds on these links, on all of them if there are none. Raises as :meth:`heal`."""
        ending = set(links) or self._filtered
        released = self._story_world.part(Capability.MESSAGES, self._target.messages).release(ending)
        _observed(released, "released", links)
        self._filtered = self._filtered - ending

    def release_one(self, link: Link, *, newest: bool) -> str:
        """Deliver one of the messages that are held on a link; the answer is its kind. Raises as :meth:`heal`."""
        released = self._story_world.part(Capability.MESSAGES, self._target.messages).release_one(link, newest=newest)
        _observed(released, "released", [link])
        return str(released["released"])

    def heal_all(self) -> bool:
        """Let every message through again; False where nothing was in its way."""
        harmed = bool(self._cut or self._filtered)
        if self._cut:
            self._story_world.part(Capability.LINKS, self._target.links).heal(sorted(self._cut))
        if self._filtered:
            self._story_world.part(Capability.MESSAGES, self._target.messages).release(self._filtered)
        self._cut, self._filtered = set(), set()
        return harmed

    def repair_all(self) -> None:
        """Let every frozen process run, and every disk do what it is asked to."""
        for node in sorted(self._paused):
            self.do(Deed.RESUME, node)
        for node in sorted(self._lying):
            self._story_world.part(Capability.WRITE_CACHES, self._target.write_caches).obey(node)

    def start_the_dead(self) -> None:
        """Start every dead broker that may return."""
        processes = self._story_world.part(Capability.PROCESSES, self._target.processes)
        for node in sorted({*self._story_world.brokers} - {*self._story_world.running} - self.abandoned):
            processes.restart(node)


def _observed(evidence: Evidence, done: str, links: Collection[Link]) -> None:
    """Raises a :class:`StepError` where nothing was observed of what was done to links."""
    if not evidence:
        where = " ".join(f"{node_name(link.source)} > {node_name(link.target)}," for link in sorted(links))
        raise StepError(f"nothing was {done} on {where.rstrip(',') or 'any link'}")
