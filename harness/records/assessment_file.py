"""The result of an assessment: what is said of each group of topics. It is written as JSON, and as text from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

ASSESSMENT_VERSION: Final = 1
Kind = Literal["now", "weakness", "defect", "risk"]


class ShownStory(msgspec.Struct, frozen=True, kw_only=True):
    """A scripted story that was performed under exactly these settings, and what harm it shows.

    Attributes:
        story: its number.
        title: its title.
        harm: what happens to ``records``.
        records: records of the script.
        families: the families of its faults.
        link: its explanation.
        together: other changes that are needed as well to prevent it.
    """

    story: str
    title: str
    harm: str
    records: tuple[str, ...]
    families: tuple[str, ...]
    link: str
    together: tuple[str, ...] = ()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of runs on Apache Kafka with one choice of settings. Times are microseconds.

    Attributes:
        release: of Apache Kafka.
        settings: those in which the two choices differ, under Kafka's names.
        p50_us, p99_us: latencies of acknowledged writes; null where runs of both choices overlap, so that nothing is
            said.
    """

    release: str
    settings: Mapping[str, str]
    p50_us: int | None
    p99_us: int | None


class MeasuredPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Measured figures without a change and with it, all else being equal, in runs without a fault.

    Each run with the change was slower than each run without it.

    Attributes:
        source: the campaigns, below results/reference.
        client: the library, and its release.
        day: the day of the runs; cores: processors of their machine; load: the load that it had beside them.
        runs: runs with each choice.
        before, after: figures without the change, and with it.
    """

    source: tuple[str, ...]
    client: str
    day: str
    cores: int
    runs: int
    before: Figures
    after: Figures
    load: str = ""


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong, known to be wrong, or risky, with the change that removes it and its price.

    Attributes:
        kind: "now" of the state in which the cluster was read, "weakness" where a story was performed and shows harm
            that a recommended setting prevents, "defect" of a known defect, "risk" of a rule of thumb.
        name: its name, the same in every assessment.
        sentence: what is the matter.
        shown: stories that show it.
        command: performs the first of these again; empty without one.
        change: what removes it.
        price: what that costs.
        measured: the same in figures; empty where none were measured.
        link: where more is said.
    """

    kind: Kind
    name: str
    sentence: str
    shown: tuple[ShownStory, ...] = ()
    command: str = ""
    change: str
    price: str
    measured: tuple[MeasuredPrice, ...] = ()
    link: str = ""


class Promised(msgspec.Struct, frozen=True, kw_only=True):
    """The promise under faults of some families; ``kept`` is true where no acknowledged write may be lost."""

    families: tuple[str, ...]
    kept: bool
    sentence: str


class Unclear(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a file that was not understood, as a sentence with its place.

    Attributes:
        sentence: where it stands, what is written, and why it was not understood.
        name: the setting that it may decide, under Kafka's name; empty: any setting.
        at_best: the best of the possible values was taken: what speaks against a requirement does so in any case.
    """

    sentence: str
    name: str = ""
    at_best: bool = False


class Assessed(msgspec.Struct, frozen=True, kw_only=True):
    """One group of topics that have the same answer, with one producer.

    Attributes:
        topics: their names.
        partitions: their log partitions together.
        replicas, racks: copies of a log partition, and the racks that they are in; racks null: not known.
        settings: what decides, under Kafka's names, with the producer's.
        producer: where its settings came from, and its library.
        promised: the promises, for families of faults.
        concerns: what is the matter; empty of a clean group.
        left: stories that show harm whatever is recommended, with the hardening that prevents it, if any.
        performed: stories that were performed.
        departed: those of them in which the settings did not allow a step, such as a write that is refused.
        unknown: stories that tell nothing, and why.
        unclear: what was not understood and may decide something of this group.
    """

    topics: tuple[str, ...]
    partitions: int
    replicas: int
    racks: int | None
    settings: Mapping[str, str]
    producer: str
    promised: tuple[Promised, ...] = ()
    concerns: tuple[Concern, ...] = ()
    left: tuple[Concern, ...] = ()
    performed: int = 0
    departed: int = 0
    unknown: tuple[str, ...] = ()
    unclear: tuple[Unclear, ...] = ()

    @property
    def clean(self) -> bool:
        """True where nothing is the matter but defects that no setting prevents, and a kill loses nothing."""
        if self.unclear:
            return False
        promised = all(each.kept for each in self.promised if "kill" in each.families)
        return promised and all(concern.kind == "defect" for concern in self.concerns)


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement of ``--require``: whether it is met, and each topic's reason why not.

    Attributes:
        text: the requirement.
        met: true where nothing speaks against it, and everything was understood that could.
        decided: false where something that could decide it was not read, not understood or not performed.
        reasons: why it is not met, or not known.
    """

    text: str
    met: bool
    decided: bool = True
    reasons: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdict as it is printed."""
        return "met" if self.met else "NOT MET" if self.decided else "NOT KNOWN"


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said of a cluster, or of files.

    Attributes:
        version: of this form.
        source: where the configuration was read.
        release: of Apache Kafka; empty where it is not known.
        brokers: their number, null where it is not known.
        groups: the groups of topics, each with each producer.
        limits: what this answer does not say.
        unread: what could not be read, so that no requirement is met.
        requirements: those of ``--require``.
        new, gone: against a baseline, "topic: kind name", or "topics: defect name" of one that no topic had; of a topic
            that is not there any more, "topic: the topic".
    """

    version: int = ASSESSMENT_VERSION
    source: str
    release: str = ""
    brokers: int | None = None
    groups: tuple[Assessed, ...]
    limits: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
