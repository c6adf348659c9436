"""The table ``[application]`` of a plan: a user's program, what it is fed, and what it promises."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

#: The number of outputs of an input.
Shape = Literal["each", "many", "some", "fold", "none"]
#: The result of the inputs of a key.
Fold = Literal["count", "sum", "last"]
#: The order of outputs that a program promises.
Order = Literal["none", "key"]
#: The fate of an input, as the program promises it.
ApplicationPromise = Literal["exactly-once", "at-least-once", "at-most-once"]
#: The template of an input's payload where the plan has none.
PAYLOAD: Final = '{"id": "{id}", "key": "{key}", "number": {number}}'


class ApplicationPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program under test."""

    command: tuple[str, ...]
    """Its command: a string of words, or a list; no shell reads it. In words and in `environment` these are replaced:
    `{bootstrap}`, the brokers' addresses; `{instance}`, the instance's number from 0 on; `{input}` and `{output}`, the
    topics; `{group}`, the group that it should read as; `{directory}`, a directory of the instance's own, which stays
    when it is started again; `{session_timeout_ms}` and `{transaction_timeout_ms}`, the settings of these names. It
    runs in the directory in which ackproof was started. Of several topics the names are joined by commas."""
    instances: Annotated[int, Meta(ge=1, le=50, description="each is a process of this machine")] = 2
    """Instances that run at the same time."""
    environment: dict[str, str] = {}
    """Variables of the environment of each instance, beside those of ackproof itself."""
    ready: str = ""
    """The sign that an instance is ready: a regular expression that a line of its output matches, or `port:NUMBER`, on
    which it listens. Without it the application is ready when its first output is there. Faults wait for this, at
    most `ready_limit_ms`."""
    ready_limit_ms: Annotated[int, Meta(ge=1)] = 60_000
    """Time for the first start."""
    stop_timeout_ms: Annotated[int, Meta(ge=1)] = 10_000
    """Time to end in order (SIGTERM); after it the instance is killed."""
    restart_pause_ms: Annotated[int, Meta(ge=1)] = 500
    """The pause before an instance that ended by itself is started again. One that ends five times in a row, each time
    within five seconds, is left alone: a crash loop."""
    output: tuple[str, ...] = ()
    """The topic, or a list of topics, that the application writes to; ackproof makes and reads them. By default it is
    the input's name with `-out`. The input is the workload's `topic`, or its `topics`. Topics that the application
    makes by itself are listed in the report."""
    payload: str = PAYLOAD
    """The payload of an input: a text in which `{id}`, `{key}` and `{number}` (0 to 999) are replaced."""
    id: str = "json:/id"
    """The place of the input's id in an output: `key`, `header:NAME`, `json:/path`, or `regex:EXPRESSION`, whose first
    group is the id. With `key`, the key of each input is its id too."""
    shape: Shape = "each"
    """Outputs of an input: one (`each`), `outputs_each`, all or none (`many`), or one of each input whose number is a
    multiple of `every` (`some`). With `fold` an output has the result of all inputs of a key so far, and the id of the
    last one; not every input needs an output of its own. With `none` the application writes to no topic; `effects` may
    say what it did."""
    effects: tuple[str, ...] = ()
    """With `shape = "none"`, a command as `command` that prints the id of an input for each of its effects, one a line.
    It is run once, after the instances were ended; `{directory}` is the one that theirs are in. Without it only the
    group's offsets are looked at."""
    outputs_each: Annotated[int, Meta(ge=2, le=1_000, description="each is remembered")] = 2
    """Outputs of an input, with `shape = "many"`."""
    every: Annotated[int, Meta(ge=2, le=1_000, description="numbers are below a thousand")] = 2
    """With `shape = "some"`: an input has an output if its number is a multiple of this."""
    fold: Fold = "count"
    """With `shape = "fold"`, the result of a key: the `count` of its inputs, the `sum` of their numbers, or the id of
    the `last` one."""
    result: str = "json:/result"
    """With `shape = "fold"`, the place of the result in an output, as of `id`."""
    order: Order = "none"
    """With `key` the program promises that outputs of a key come in the order of its inputs, in each log partition of
    the output. Each key is in one log partition of the input."""
    promise: ApplicationPromise = "exactly-once"
    """The promise of the program. With `at-least-once` an input may have several effects, with `at-most-once` none.
    Effects are what readers with the setting `isolation.level` read."""

    @property
    def outputs_of_each(self) -> int:
        """The outputs of an input that has any."""
        return self.outputs_each if self.shape == "many" else 1
