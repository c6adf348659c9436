"""aiokafka as a client program of ackproof: `ackproof client check .venv/bin/python client.py`."""

import asyncio
import base64
import json
import sys

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.producer.transaction_manager import TransactionState

#: Standard output is for answers: whatever a library prints goes to standard error.
ANSWERS, sys.stdout = sys.stdout, sys.stderr
CAPABILITIES = ["transactions", "tombstones", "subscription", "commits"]
#: The longest line of a call.
LINE_MAX = 64 * 2**20
#: Steps of a poll, so that a call to wake up ends it.
STEP_MS = 100
#: Properties whose names differ. The library has no max.block.ms; its request.timeout.ms is the limit of a send, too.
NAMES = {
    "batch.size": "max_batch_size",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
PRODUCER = """bootstrap_servers client_id metadata_max_age_ms request_timeout_ms acks compression_type max_batch_size
    linger_ms retry_backoff_ms security_protocol enable_idempotence transactional_id transaction_timeout_ms
    sasl_mechanism sasl_plain_username sasl_plain_password"""
CONSUMER = """bootstrap_servers client_id metadata_max_age_ms request_timeout_ms retry_backoff_ms group_id
    group_instance_id fetch_max_wait_ms fetch_max_bytes auto_offset_reset enable_auto_commit auto_commit_interval_ms
    check_crcs max_poll_interval_ms session_timeout_ms heartbeat_interval_ms max_poll_records isolation_level
    client_rack security_protocol
    sasl_mechanism sasl_plain_username sasl_plain_password"""

open_calls = {}


def say(message):
    """Write one line."""
    ANSWERS.write(json.dumps(message) + "\n")
    ANSWERS.flush()


def answer(call, **result):
    """Write a call's one answer; what the library says after that is dropped."""
    if open_calls.pop(call["call"], None) is not None:
        say({"call": call["call"], **result})


def answer_error(call, kind, error):
    """Say how a call failed. A refused record was never taken by the library: certainly it was not written."""
    end = "fail" if kind == "refused" else "info"
    answer(call, end=end, **{"class": kind, "error": type(error).__name__, "words": str(error)})


class Client:
    """One producer or consumer: a task does its calls, in their order. A method of the class is one of a call."""

    def __init__(self):
        self.library = None
        self.calls = asyncio.Queue()
        self.task = asyncio.create_task(self.work())

    async def work(self):
        """Do calls until the one that ends the client."""
        while True:
            call = await self.calls.get()
            try:
                result = await getattr(self, call["method"])(call)
            except Exception as error:
                answer_error(call, self.kind_of(error), error)
            else:
                if result is not None:
                    answer(call, end="ok", **result)
            if call["method"] in ("close", "crash"):
                return

    def kind_of(self, _):
        """The class of an error."""
        return "failed"

    async def close(self, call):
        """Close in order within the time limit, then answer what the library has left open."""
        if self.library is not None:
            try:
                await asyncio.wait_for(self.library.stop(), call["timeout_ms"] / 1000)
            except (TimeoutError, KafkaError):
                await self.drop()
        for left in [each for each in open_calls.values() if each["client"] == call["client"] and each is not call]:
            answer(left, end="info", error="Closed", **{"class": "failed"})
        return {}


class Producer(Client):
    """Sends and transactions."""

    async def new_producer(self, call):
        """Make the library's producer, which connects at once."""
        self.library = AIOKafkaProducer(**spelled(call["properties"], PRODUCER))
        try:
            await self.library.start()
        except BaseException:
            await self.library.client.close()
            self.library = None
            raise
        return {}

    async def send(self, call):
        """Give a record to the library; it is answered when the library answers."""
        headers = [(name, base64.b64decode(value)) for name, value in (call.get("headers") or {}).items()]
        try:
            sent = await self.library.send(
                call["topic"], decoded(call, "value"), decoded(call, "key"), call["partition"], headers=headers
            )
        except Exception as error:
            answer_error(call, "refused", error)
        else:
            sent.add_done_callback(lambda ended: self.sent(call, ended))

    def sent(self, call, ended):
        """Tell the end of a send."""
        error = asyncio.CancelledError("dropped") if ended.cancelled() else ended.exception()
        if error is not None:
            answer_error(call, "failed", error)
        else:
            offset = ended.result().offset if ended.result() else -1
            answer(call, end="ok", offset=offset if offset >= 0 else None)

    async def init_transactions(self, _):
        """Fence earlier producers: the library did it when it started."""
        return {}

    async def begin_transaction(self, _):
        """Open a transaction."""
        await self.library.begin_transaction()
        return {}

    async def send_offsets(self, call):
        """Add offsets of a group; the library knows the group by its name only."""
        offsets = {TopicPartition(each["topic"], each["partition"]): each["offset"] for each in call["offsets"]}
        await self.library.send_offsets_to_transaction(offsets, call["member"]["group"])
        return {}

    async def commit_transaction(self, _):
        """Commit the open transaction."""
        await self.library.commit_transaction()
        return {}

    async def abort_transaction(self, _):
        """Abort the open transaction."""
        await self.library.abort_transaction()
        return {}

    def kind_of(self, error):
        """The class by the state of the transaction: the error's name does not say what became of it."""
        manager = self.library and self.library._txn_manager  # noqa: SLF001 - the library's version is pinned
        if manager and manager.state is TransactionState.FATAL_ERROR:
            return "fatal"
        if manager and manager.state is TransactionState.ABORTABLE_ERROR:
            return "abortable"
        return "retriable" if getattr(error, "retriable", False) else "failed"

    async def drop(self):
        """Flush nothing and close the connections."""
        self.library._closed = True  # noqa: SLF001
        await self.library._sender.close()  # noqa: SLF001
        await self.library.client.close()

    async def crash(self, call):
        """Drop the producer as if its process had been killed."""
        if self.library is not None:
            await self.drop()
        self.library = None
        return await self.close(call)


class Consumer(Client):
    """Reads."""

    def __init__(self):
        self.woken = asyncio.Event()
        self.group = None
        super().__init__()

    async def new_consumer(self, call):
        """Make the library's consumer, which connects at once."""
        self.group = call["properties"].get("group.id")
        self.library = AIOKafkaConsumer(**spelled(call["properties"], CONSUMER))
        try:
            await self.library.start()
        except BaseException:
            await self.drop()
            self.library = None
            raise
        return {}

    async def assign(self, call):
        """Read these log partitions, from an offset or from the start."""
        begins = {TopicPartition(each["topic"], each["partition"]): each.get("offset") for each in call["offsets"]}
        self.library.assign(list(begins))
        for partition, offset in begins.items():
            if offset is None:
                await self.library.seek_to_beginning(partition)
            else:
                self.library.seek(partition, offset)
        return {}

    async def poll(self, call):
        """Records, in short steps."""
        left_ms, records = call["timeout_ms"], []
        while not records:
            step_ms = min(left_ms, STEP_MS)
            records = [each for some in (await self.library.getmany(timeout_ms=step_ms)).values() for each in some]
            left_ms -= step_ms
            if left_ms <= 0 or self.woken.is_set():
                break
        self.woken.clear()
        return {"records": [record_of(each) for each in records]}

    async def ends(self, call):
        """The end of each log partition."""
        ends = await asyncio.wait_for(self.library.end_offsets(partitions(call)), call["timeout_ms"] / 1000)
        return {"offsets": [offset_of(partition, offset) for partition, offset in ends.items()]}

    async def subscribe(self, call):
        """Join the group, and tell what it assigns."""
        self.library.subscribe(call["topics"], listener=Listener(self.library, call))
        return {}

    async def commit(self, call):
        """Commit offsets of the group."""
        offsets = {TopicPartition(each["topic"], each["partition"]): each["offset"] for each in call["offsets"]}
        await asyncio.wait_for(self.library.commit(offsets), call["timeout_ms"] / 1000)
        return {}

    async def committed(self, call):
        """The offsets that the group has; it may have none."""
        told = []
        for partition in partitions(call):
            offset = await asyncio.wait_for(self.library.committed(partition), call["timeout_ms"] / 1000)
            told += [] if offset is None else [offset_of(partition, offset)]
        return {"offsets": told}

    async def membership(self, _):
        """The group, which is all that the library wants in a transaction."""
        return {"member": {"group": self.group}}

    async def drop(self):
        """Close the connections, and do not leave the group."""
        if self.library._fetcher:  # noqa: SLF001
            await self.library._fetcher.close()  # noqa: SLF001
        await self.library._client.close()  # noqa: SLF001

    async def crash(self, call):
        """Drop the consumer as if its process had been killed."""
        if self.library is not None:
            await self.drop()
        self.library = None
        return await self.close(call)


class Listener(ConsumerRebalanceListener):
    """Tells what a group leaves to a member."""

    def __init__(self, library, call):
        self._library = library
        self._call = call

    def on_partitions_assigned(self, assigned):
        """Tell all that the member has now."""
        left = [{"topic": each.topic, "partition": each.partition} for each in assigned]
        generation = self._library._coordinator.generation  # noqa: SLF001
        say({"call": self._call["call"], "event": "assigned", "partitions": left, "generation": generation})

    def on_partitions_revoked(self, _):
        """Tell that nothing is left: this library takes all away before it assigns."""
        say({"call": self._call["call"], "event": "assigned", "partitions": []})


def spelled(properties, known):
    """Kafka's properties as arguments of aiokafka, as far as it knows them."""
    own = {NAMES.get(name, name).replace(".", "_"): read(text) for name, text in properties.items()}
    if own.get("ssl_ca_location"):
        context = aiokafka.helpers.create_ssl_context(
            cafile=own["ssl_ca_location"],
            certfile=own.get("ssl_certificate_location"),
            keyfile=own.get("ssl_key_location"),
        )
        return {name: own[name] for name in known.split() if name in own} | {"ssl_context": context}
    return {name: own[name] for name in known.split() if name in own}


def read(text):
    """A property's value: a number, true or false, none, or a text."""
    words = {"true": True, "false": False, "none": None}
    try:
        return int(text)
    except ValueError:
        return words.get(text, text)


def decoded(call, key):
    """The bytes under a key; None where there are none."""
    return None if call.get(key) is None else base64.b64decode(call[key])


def encoded(value):
    """Bytes as a message has them."""
    return None if value is None else base64.b64encode(value).decode()


def record_of(record):
    """A record as a message has it."""
    return {
        **offset_of(record, record.offset),
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": {name: encoded(value) for name, value in record.headers},
    }


def offset_of(partition, offset):
    """An offset of a log partition as a message has it."""
    return {"topic": partition.topic, "partition": partition.partition, "offset": offset}


def partitions(call):
    """The log partitions of a call."""
    return [TopicPartition(each["topic"], each["partition"]) for each in call["partitions"]]


async def main():
    """Say hello, then hand each call to its client until standard input ends."""
    lines, clients = asyncio.StreamReader(limit=LINE_MAX), {}
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    say({"hello": 1, "name": "aiokafka", "version": aiokafka.__version__, "capabilities": CAPABILITIES})
    while line := await lines.readline():
        call = json.loads(line)
        number, method = call["client"], call["method"]
        if method == "wake_up":
            if number in clients:
                clients[number].woken.set()
            continue
        if number not in clients:
            clients[number] = (Producer if method == "new_producer" else Consumer)()
        open_calls[call["call"]] = call
        clients[number].calls.put_nowait(call)
        if method in ("close", "crash"):
            clients.pop(number)


if __name__ == "__main__":
    try:
        asyncio.run(asyncio.wait_for(main(), None))
    except KeyboardInterrupt:
        sys.exit(130)
