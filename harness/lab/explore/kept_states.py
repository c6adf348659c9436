"""The states that a search has met, in as little memory as possible: those that wait are packed, the others hashes."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from harness.lab.explore.searched import State


class Packing:
    """The digests of states as numbers of 32 bits: each digest gets the next number when it is first met."""

    def __init__(self, width: int) -> None:
        self._struct = struct.Struct(f"{width}I")
        self._numbers = _Numbers()
        self.size = self._struct.size

    def pack(self, state: State) -> bytes:
        """A state as bytes, which only this object understands."""
        return self._struct.pack(*map(self._numbers.__getitem__, state))

    def unpack(self, packed: bytes | memoryview) -> State:
        """The state that was packed."""
        return tuple(map(self._numbers.digests.__getitem__, self._struct.unpack(packed)))


class _Numbers(dict[int, int]):
    def __init__(self) -> None:
        super().__init__()
        self.digests = array("q")

    def __missing__(self, digest: int) -> int:
        number = self[digest] = len(self.digests)
        self.digests.append(digest)
        return number


class Level:
    """States of one level: their hashes, the hash of the least state that each follows, and themselves, packed."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._positions: dict[int, int] = {}
        self._packed = bytearray()
        self.digests, self.parents = array("q"), array("q")

    def parent_of(self, digest: int) -> int | None:
        """The hash of the state that this one follows; None if it is not here."""
        position = self._positions.get(digest)
        return None if position is None else self.parents[position]

    def keep(self, digest: int, parent: int, state: State) -> None:
        """Keep a state that follows ``parent``, or that it does, if that is less."""
        position = self._positions.setdefault(digest, len(self.digests))
        if position == len(self.digests):
            self.digests.append(digest)
            self.parents.append(parent)
            self._packed += self._packing.pack(state)
        elif parent < self.parents[position]:
            self.parents[position] = parent

    def take(self) -> Iterator[tuple[int, State]]:
        """The states, with their hashes. After that there are only hashes here."""
        packed, size, unpack = memoryview(self._packed), self._packing.size, self._packing.unpack
        self._positions, self._packed = {}, bytearray()
        for position, digest in enumerate(self.digests):
            yield digest, unpack(packed[position * size : (position + 1) * size])


class SeenHashes:
    """Hashes of states, eight bytes each, in order."""

    def __init__(self) -> None:
        self._digests: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def add(self, digests: array[int]) -> None:
        """Add hashes that are not here yet."""
        self._digests = np.sort(np.concatenate((self._digests, np.frombuffer(digests, np.int64))))

    def without(self, digests: list[int]) -> set[int]:
        """The hashes among these that are not here."""
        asked = np.sort(np.array(digests, np.int64))
        if not len(self._digests):
            return set(digests)
        positions = np.searchsorted(self._digests, asked)
        positions[positions == len(self._digests)] = 0
        new: list[int] = asked[self._digests[positions] != asked].tolist()
        return set(new)
