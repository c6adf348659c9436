"""Chance: labelled streams of bounded draws, which can be recorded and performed again.

Everything that a run leaves to chance is drawn here; there is no second source of chance in the program. A stream
belongs to one subject: this link, this cut, this story of a schedule. Its numbers follow from the run's seed and its
label alone, so that taking one fault out of a schedule, or one link out of a cluster, shifts no draw of any other
subject. A seed is therefore a whole run, and so is a recording, in which single draws can be changed.

Draw 0 is the most ordinary choice wherever there is one (the shortest delay, no fault), so that smaller
recordings are tamer runs.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.ground.errors import ChoicesError


def derived_seed(seed: int, *path: object) -> int:
    """A seed for the thing that ``path`` names, the same on every machine: 48 bits, exact in JSON and JavaScript."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every draw of a run: the values of each stream, in the order in which they were drawn. ``choices.json``."""

    seed: int
    streams: dict[str, list[int]]


class Stream:
    """Draws on one subject. ``drawn`` are their values so far."""

    __slots__ = ("_keep", "_next", "drawn", "label")

    def __init__(self, label: str, fraction: Callable[[], float]) -> None:
        self.label = label
        self.drawn: list[int] = []
        self._keep = self.drawn.append
        self._next = fraction

    def continue_with(self, fraction: Callable[[], float]) -> None:
        """Draw from ``fraction``, which gives numbers from 0 up to 1, from now on."""
        self._next = fraction

    def draw(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1; ``bound`` is from 1 to 2**53.

        Raises:
            ChoicesError: there is nothing to choose from.
        """
        if bound < 1:
            raise ChoicesError(f'"{self.label}" asks for one of {bound} choices; report it, with the plan')
        value = int(self._next() * bound)
        self._keep(value)
        return value


class RecordedStream(Stream):
    """A stream whose numbers were drawn before."""

    __slots__ = ("_over", "_values")

    def __init__(self, label: str, values: Sequence[int]) -> None:
        super().__init__(label, _no_fraction)
        self._values = values
        self._over = False

    def continue_with(self, fraction: Callable[[], float]) -> None:
        """See :meth:`Stream.continue_with`: what was recorded beyond this is not asked for any more."""
        super().continue_with(fraction)
        self._over = True

    def draw(self, bound: int) -> int:
        """The next recorded value.

        Raises:
            ChoicesError: the recording ends, or the value is not below ``bound``: the recording is of another run.
        """
        if self._over:
            return super().draw(bound)
        position = len(self.drawn)
        if position >= len(self._values):
            raise ChoicesError(
                f'the recorded choices end after {position} of "{self.label}", and the run asks for one more; '
                "perform them with the plan and the version that recorded them"
            )
        value = self._values[position]
        if not 0 <= value < bound:
            raise ChoicesError(
                f'the recorded choice {position} of "{self.label}" is {value}, and there are {bound} to choose from; '
                "perform them with the plan and the version that recorded them"
            )
        self._keep(value)
        return value


class Choices:
    """All streams of one run, drawn from ``seed``, or performed again from ``recording``.

    A stream that the recording lacks is an empty one: asking it for a number is an error.
    """

    def __init__(self, seed: int, recording: Mapping[str, Sequence[int]] | None = None) -> None:
        self.seed = seed
        self._recording = recording
        self._streams: dict[str, Stream] = {}

    @classmethod
    def recorded(cls, recording: Recording) -> Choices:
        """The choices of a run that was recorded."""
        return cls(recording.seed, recording.streams)

    def stream(self, label: str) -> Stream:
        """The stream of the subject that ``label`` names; it goes on where it was left."""
        stream = self._streams.get(label)
        if stream is None:
            stream = self._streams[label] = self._begun(label)
        return stream

    def draw(self, label: str, bound: int) -> int:
        """One number from 0 to ``bound`` - 1 for the subject that ``label`` names (``nemesis.scenarios.Draw``).

        Raises:
            ChoicesError: the choices were recorded, and do not answer this question.
        """
        return self.stream(label).draw(bound)

    def reseed(self, seed: int) -> None:
        """Let every stream go on with the numbers of another seed: another future after the same past.

        A recording is performed no further.
        """
        self.seed, self._recording = seed, None
        for label, stream in self._streams.items():
            stream.continue_with(self._fractions(label))

    def recording(self) -> Recording:
        """Every draw so far."""
        return Recording(self.seed, dict(self._drawn()))

    def _begun(self, label: str) -> Stream:
        if self._recording is not None:
            return RecordedStream(label, self._recording.get(label, ()))
        return Stream(label, self._fractions(label))

    def _fractions(self, label: str) -> Callable[[], float]:
        return random.Random(derived_seed(self.seed, label)).random  # noqa: S311 (repeatable on purpose)

    def _drawn(self) -> Iterator[tuple[str, list[int]]]:
        for label, stream in self._streams.items():
            if stream.drawn:
                yield label, list(stream.drawn)


def _no_fraction() -> float:
    """A recorded stream has values instead."""
    raise AssertionError("a recorded stream has values")
