"""The application under test at the end of a run, as the detail of an event ``APPLICATION`` has it."""

from __future__ import annotations

import msgspec

from workloads.application_plan import ApplicationPromise, Fold, Order, Shape


class InstanceExit(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an instance that nothing of the run asked for.

    Attributes:
        instance: its number.
        time_us: when that was noticed, in microseconds of the run.
        exit: how it ended ("status 1", "signal 11").
        lived_ms: how long it had run.
        words: the end of what it had printed.
    """

    instance: int
    time_us: int
    exit: str
    lived_ms: int
    words: str


class InputProgress(msgspec.Struct, frozen=True, array_like=True):
    """The progress of an application at a moment: inputs that were acknowledged, inputs with an effect, and commits.

    ``committed`` is the sum of the offsets that its group has committed.
    """

    time_us: int
    inputs: int
    done: int
    committed: int


class ApplicationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An application at the end of a run.

    Attributes:
        shape, outputs_each, every, promise: as the plan has them; ``outputs_each`` is 1 but in ``many``.
        order: as the plan has it. fold: the result of a key, None in other shapes.
        keys: the keys of each log partition of the input (:func:`workloads.key_of`).
        group: the group that it was told to read as.
        inputs: the log partitions of its input.
        outputs: the log partitions of its output, or a sink; none where only its group tells what it did. The events
            of effects name them by their place here.
        unread: those that were not read to their end, and why: what was not read there proves nothing.
        committed: by log partition of the input, the offset that its group has committed; none where it has none.
        exits: the ends of instances that the run did not ask for, in order of time.
        crash_loops: the instances that were left alone because they ended at once again and again.
        starts: how often an instance was started.
        waited_ms: how long it was waited for after healing.
        instances: the instances of the plan. progress: by moment, in order of time.
        topics: topics that were made beside those of the run, by the application itself.
    """

    shape: Shape
    outputs_each: int
    every: int
    promise: ApplicationPromise
    group: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    order: Order = "none"
    fold: Fold | None = None
    keys: int = 1
    unread: dict[str, str] = {}
    committed: dict[str, int] = {}
    exits: tuple[InstanceExit, ...] = ()
    crash_loops: tuple[int, ...] = ()
    starts: int = 0
    waited_ms: int = 0
    topics: tuple[str, ...] = ()
    instances: int = 0
    progress: tuple[InputProgress, ...] = ()
