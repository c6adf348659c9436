"""A loop with aiokafka that promises exactly once, as its documentation has it: a transaction a batch, with offsets.

ackproof campaign examples/applications/aiokafka.toml
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError


class Waits(ConsumerRebalanceListener):
    """Lets the group take log partitions only between two transactions."""

    def __init__(self) -> None:
        self.transaction = asyncio.Lock()
        self.rebalances = 0

    async def on_partitions_revoked(self, revoked: object) -> None:  # noqa: ARG002
        """Wait for the open transaction; what was read and not written is read again."""
        async with self.transaction:
            self.rebalances += 1

    async def on_partitions_assigned(self, assigned: object) -> None:
        """Positions are those that the group has committed."""


async def work(bootstrap: str, source: str, target: str, group: str, instance: str) -> int:
    """Read, write, hand over the offsets, commit; until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
    )
    consumer.subscribe([source], listener=(waits := Waits()))
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"{group}-{instance}", transaction_timeout_ms=10_000
    )
    await producer.start()
    await consumer.start()
    try:
        while not ended.is_set():
            before = waits.rebalances
            batches = await consumer.getmany(timeout_ms=200)
            async with waits.transaction:
                if not batches:
                    continue
                if waits.rebalances != before:  # whether they were read before or after it is not known
                    await consumer.seek_to_committed()
                    continue
                async with producer.transaction():
                    for records in batches.values():
                        for record in records:
                            await producer.send(target, key=record.key, value=record.value)
                    offsets = {partition: records[-1].offset + 1 for partition, records in batches.items()}
                    await producer.send_offsets_to_transaction(offsets, group)
    except KafkaError as error:
        print(f"the transaction is aborted: {error!r}", flush=True)
        return 1  # started again, it goes on from the last commit
    finally:
        await consumer.stop()
        await producer.stop()
    return 0


def main(arguments: Sequence[str]) -> int:
    """Work with these: brokers, input, output, group, instance."""
    return asyncio.run(work(*arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
