"""The model of a client under a test's control: connections and metadata work by themselves, time passes on demand."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.broker.core import messages
from harness.broker.core.effects import Arm
from harness.broker.core.messages import Message, Metadata, MetadataResponse
from harness.broker.core.types import BrokerState, ErrorCode, Image, PartitionState, TopicConfig, TopicState
from harness.worlds.simulated.network_client import ClientEffect, ClientModel, Completed, Connect

MS = 1_000


def image_of(leaders: Mapping[str, Sequence[int]], epoch: int = 0) -> Image:
    """Three brokers, and of each topic the leaders of its log partitions, in this leader epoch."""
    topics = {
        topic: TopicState(TopicConfig(), tuple(PartitionState((0, 1, 2), (0, 1, 2), n, epoch, epoch) for n in led))
        for topic, led in leaders.items()
    }
    return Image(epoch + 1, {n: BrokerState(n, fenced=False) for n in range(3)}, topics)


class ClientSession:
    """A client with a clock of its own; what it asks beside metadata is served by the session of its kind."""

    model: ClientModel

    def __init__(self, model: ClientModel, image: Image) -> None:
        self.model = model
        self.image = image
        self.now_us = 0
        self._timers: list[int] = []

    def close(self) -> None:
        self._do(self.model.close("ClientClosed"))

    def disconnect(self, broker: int) -> None:
        self._do(self.model.on_disconnected(self.now_us, broker))

    def wait(self, duration_ms: int) -> None:
        until_us = self.now_us + duration_ms * MS
        while self._timers and min(self._timers) <= until_us:
            self.now_us = min(self._timers)
            self._timers.remove(self.now_us)
            self._do(self.model.on_timer(self.now_us, None))  # type: ignore[arg-type]
        self.now_us = until_us

    def _answer(self, broker: int, request: Message, error: ErrorCode, **fields: Any) -> None:
        """Let the client have the answer to a request of a coordinator."""
        kind = getattr(messages, f"{type(request).__name__}Response")
        self._do(self.model.on_message(self.now_us, broker, kind(request.correlation, error, **fields)))

    def _do(self, effects: list[ClientEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Arm):
                self._timers.append(effect.at_us)
            elif isinstance(effect, Connect):
                self._connect(effect.broker)
            elif isinstance(effect, Completed):
                self._completed(effect.done, effect.outcome)
            elif isinstance(effect.message, Metadata):
                response = MetadataResponse(effect.message.correlation, self.image)
                self._do(self.model.on_message(self.now_us, effect.target, response))
            else:
                self._serve(effect.target, effect.message)

    def _connect(self, broker: int) -> None:
        self._do(self.model.on_connected(self.now_us, broker))

    def _completed(self, done: Any, outcome: Any) -> None:
        raise NotImplementedError

    def _serve(self, broker: int, message: Message) -> None:
        raise NotImplementedError
