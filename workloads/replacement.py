"""Replaces producers that stop working, as an application would, and tries them beside their successor.

A producer instance is given up when it is

* *fatal*: the client itself refused one send after the other, and not because it waits for something; or
* *silent*: on some log partition it has made sends for longer than the settings let a send take, and none was
  acknowledged. With acks=0 every send is "acknowledged", so no producer is silent.

A new instance takes its slot at once for all sends. That alone says nothing about the old one: the log may not have
been writable. So the old one is not closed yet but *tried*: right after its successor had a write of a log partition
acknowledged, the old one is asked to write to it too, a second apart, :data:`TRIAL_WRITES` times, and after the last
one it has request.timeout.ms and a second, in which it must notice that a request got lost and send again. If none of
these writes is acknowledged while the successor's are, without a gap, the old client is *wedged* there: it would never
have written again though the log was well. Then it is closed, and the history says why (:class:`Retirement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple, TypedDict

import msgspec

from workloads.client import SendOutcome
from workloads.instance import ProducerInstance, Writers
from workloads.operations import Event, EventType, Function, Retirement

#: Refused sends in a row after which a client is taken to refuse for good: more than are in its buffer when it
#: reconnects, less than a second of any workload.
REFUSALS_MAX: Final = 10
#: A producer that has been silent for this share of the limit may be about to be given up. One that is given up for one
#: log partition is tried on all where it has been silent so long.
DOUBTFUL_SHARE: Final = 0.5
#: The least time between two replacements in one slot: each is a client with threads and connections, and one that is
#: fatal from its first send on (a right that is lacking) would be made again all the time.
REPLACE_EVERY_MS: Final = 1_000
#: Over five seconds: a client may take this long to notice that a log partition can be written again, because its
#: metadata are refreshed within 5 s (they are set so).
TRIAL_WRITES: Final = 6
TRIAL_PAUSE_MS: Final = 1_000
#: After request.timeout.ms: a client reconnects within 1 s (it is set so).
RECONNECT_MS: Final = 1_000
#: Without an acknowledgement of the successor for this long, the log partition was not writable throughout: try again.
TRIAL_GAP_MS: Final = 1_500
#: A trial on a log partition that is hardly ever writable, or written to, ends undecided after this much
#: more than request.timeout.ms.
TRIAL_LIMIT_MS: Final = 30_000
#: Instances of one slot that are tried at a time, the newest: each is an open client.
TRIALS_MAX: Final = 3
#: The key of writes of a trial.
TRIAL_KEY: Final = b"trial"


class SilenceLimit(NamedTuple):
    """Limit of an instance's silence before it is given up, None for no limit; and request.timeout.ms."""

    silent_ms: int | None
    request_ms: int


class _PartitionTrial(msgspec.Struct):
    """A trial on one log partition: writes of the old instance, time of the last, time of the successor's last ack."""

    asked: int = 0
    asked_us: int = 0
    acknowledged_us: int = 0


class Trial:
    """An instance that was given up, beside the one that has its slot now. ``facts`` are those known so far.

    ``request_ms`` is request.timeout.ms.
    """

    def __init__(
        self, retired: ProducerInstance, facts: Retirement, partitions: Iterable[str], now_us: int, request_ms: int
    ) -> None:
        self.retired = retired
        self.facts = facts
        self._open = {partition: _PartitionTrial() for partition in partitions}
        self._wedged: list[str] = []
        self._answer_us = (request_ms + RECONNECT_MS) * 1000
        self._limit_us = now_us + (TRIAL_LIMIT_MS + request_ms) * 1000

    def over(self, now_us: int) -> bool:
        """True once every log partition is decided, or the limit has passed."""
        return not self._open or now_us >= self._limit_us

    def acknowledged(self, by: ProducerInstance, partition: str, now_us: int) -> None:
        """Take an acknowledgement of the old instance, which ends the trial, or of its successor."""
        if by is self.retired:
            self._open.pop(partition, None)
        elif (trial := self._open.get(partition)) is not None:
            if now_us > trial.acknowledged_us + TRIAL_GAP_MS * 1000:
                trial.asked = 0
            trial.acknowledged_us = now_us
            if trial.asked == TRIAL_WRITES:
                if now_us >= trial.asked_us + self._answer_us:
                    self._wedged.append(partition)
                    del self._open[partition]
            elif not trial.asked or now_us >= trial.asked_us + TRIAL_PAUSE_MS * 1000:
                trial.asked, trial.asked_us = trial.asked + 1, now_us
                self.retired.send(partition, TRIAL_KEY)

    def close(self) -> Retirement:
        """Close the old client, and give the facts of its end."""
        errors = tuple(self.retired.errors)
        self.retired.close()
        return msgspec.structs.replace(self.facts, wedged=tuple(sorted(self._wedged)), errors=errors)


class CrashedProducer(TypedDict, total=False):
    """A producer that died: number of its ``instance``, its ``outstanding`` sends, number of the ``successor``."""

    instance: int
    outstanding: int
    successor: int


class ProducerSlot:
    """One producer of the plan: the instance that has its slot now, and those before while they are tried.

    ``acknowledged`` is called with the log partition of each acknowledgement.
    """

    def __init__(
        self,
        writers: Writers,
        partitions: Iterable[str],
        patience: SilenceLimit,
        acknowledged: Callable[[str], None],
    ) -> None:
        self._writers = writers
        self._partitions = tuple(partitions)
        self._patience = patience
        self._acknowledged = acknowledged
        self._trials: list[Trial] = []
        self._made_us = 0
        self.instance = self._make()

    def crash(self) -> CrashedProducer:
        """Let the instance die, and a new one take its place."""
        crashed, self.instance = self.instance, self._make()
        crashed.crash()
        return CrashedProducer(instance=crashed.number, outstanding=crashed.outstanding, successor=self.instance.number)

    def look(self) -> None:
        """Replace the instance if it has stopped working; end trials that are over."""
        now_us = self._writers.clock.now_us()
        for trial in [trial for trial in self._trials if trial.over(now_us)]:
            self._end(trial)
        silent = self._silent(now_us)
        fatal = self.instance.refused >= REFUSALS_MAX
        if (silent or fatal) and now_us >= self._made_us + REPLACE_EVERY_MS * 1000:
            self._replace("fatal" if fatal else "silent", self._silent(now_us, DOUBTFUL_SHARE), now_us)

    @property
    def settled(self) -> bool:
        """True unless an instance is being tried, or the one that writes may be about to be given up."""
        return not self._trials and not self._silent(self._writers.clock.now_us(), DOUBTFUL_SHARE)

    def close(self) -> None:
        """Close every client: outstanding sends end as INFO."""
        for trial in tuple(self._trials):
            self._end(trial)
        self.instance.close()

    def _make(self) -> ProducerInstance:
        self._made_us = self._writers.clock.now_us()
        return ProducerInstance(self._writers, self._answered)

    def _silent(self, now_us: int, share: float = 1.0) -> dict[str, int]:
        """The silence of the instance so far, by log partition where it is ``share`` of the limit or more."""
        if self._patience.silent_ms is None:
            return {}
        least_us = self._patience.silent_ms * 1000 * share
        since_us = self.instance.silent_since_us
        if not since_us or now_us - min(since_us.values()) < least_us:
            return {}
        return {name: now_us - began_us for name, began_us in since_us.items() if now_us - began_us >= least_us}

    def _replace(self, reason: Literal["fatal", "silent"], silent: dict[str, int], now_us: int) -> None:
        retired, self.instance = self.instance, self._make()
        facts = Retirement(
            reason=reason,
            successor=self.instance.number,
            silent_ms=max(silent.values(), default=0) // 1000,
            partitions=tuple(sorted(silent)),
            errors=(),
            client=self._writers.clients.name_of(retired.number),
        )
        partitions = silent if reason == "silent" else self._partitions
        self._trials.append(Trial(retired, facts, partitions, now_us, self._patience.request_ms))
        if len(self._trials) > TRIALS_MAX:
            self._end(self._trials[0])

    def _answered(self, instance: ProducerInstance, partition: str, outcome: SendOutcome) -> None:
        if outcome.type is not EventType.OK:
            return
        for trial in tuple(self._trials):
            if instance in (self.instance, trial.retired):
                trial.acknowledged(instance, partition, self._writers.clock.now_us())
        self._acknowledged(partition)

    def _end(self, trial: Trial) -> None:
        """Close an instance that was tried, and write down the result."""
        self._trials.remove(trial)
        facts = trial.close()
        self._writers.recorder.record(
            Event(
                time_us=self._writers.clock.now_us(),
                process=trial.retired.number,
                instance=trial.retired.number,
                type=EventType.INFO,
                function=Function.RETIRE,
                error=_sentence(facts),
                detail=msgspec.json.encode(facts).decode(),
            )
        )


def _sentence(facts: Retirement) -> str:
    if facts.reason == "fatal":
        why = f"the client refused {REFUSALS_MAX} sends in a row"
    else:
        why = f"no write of {', '.join(facts.partitions)} was acknowledged for {facts.silent_ms} ms"
    return f"{why}; producer {facts.successor} took its place"
