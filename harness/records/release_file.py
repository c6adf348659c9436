"""The known harms that a release of Apache Kafka does: ``release.json`` of `ackproof release`."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN

RELEASE_VERSION: Final = 1
Result = Literal["new", "still", "gone", "not shown", "not observed"]
EntryKind = Literal["finding", "defect", "certificate", "advice", "story"]


class ReleasePlay(msgspec.Struct, frozen=True, kw_only=True):
    """One try to show a harm on a release.

    Attributes:
        shown: the harm shows; null where nothing could be observed.
        seen: what was observed, in sentences.
        why: the reason why nothing could be observed.
        seconds: how long it took.
        by: the version of ackproof.
    """

    shown: bool | None
    seen: tuple[str, ...] = ()
    why: str = ""
    seconds: float = 0.0
    by: str = ""


class ReleaseEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One harm that was looked for.

    Attributes:
        name: "finding 008 commit", "story S40".
        title: the harm in a few words.
        page: where more of it is said; "" for nowhere.
        result: new: it shows, and no page says so of this release. still: it shows, as its page says, or on the
            compared release too. gone: it shows on the compared release and not here. not shown: on neither. not
            observed: ``why``.
        worse: it shows here, and the compared release does not have it.
        command: what repeats it.
        tries: how often it was played and something observed; shown: in how many of them it showed.
        against_tries, against_shown: the same on the compared release; 0 tries where its page's word was enough.
        seen: what the try that decides observed.
    """

    name: str
    kind: EntryKind
    title: str
    page: str = ""
    result: Result
    worse: bool = False
    command: str
    tries: int = 0
    shown: int = 0
    against_tries: int = 0
    against_shown: int = 0
    seen: tuple[str, ...] = ()
    why: str = ""


class ReleaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A release that was judged.

    Attributes:
        release, against: the releases.
        patch: the directory of classes that were put before the release's own; "" for none.
        day: the day of the last play; by: the version of ackproof.
        minutes: how long all plays took, of both releases.
        machine: where.
        entries: what was looked for, most telling first.
    """

    release: str
    against: str
    patch: str = ""
    day: str
    by: str
    minutes: float
    machine: str
    entries: tuple[ReleaseEntry, ...]

    def of(self, result: Result) -> tuple[ReleaseEntry, ...]:
        """The entries with this result."""
        return tuple(entry for entry in self.entries if entry.result == result)

    @property
    def exit_code(self) -> int:
        """1 where a harm shows that the other release does not have, 2 where something was not observed, else 0."""
        if any(entry.worse for entry in self.entries):
            return EXIT_BROKEN
        return EXIT_UNKNOWN if self.of("not observed") else EXIT_HELD
