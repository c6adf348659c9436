"""A client program for ackproof: the protocol, and kafka-python behind it. Put your library in its place.

Check it with `ackproof client check python3 client.py`; the guide is docs/guides/client-programs.md of ackproof.
"""

import base64
import json
import queue
import sys
import threading

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

#: Standard output is for answers: whatever a library prints goes to standard error.
ANSWERS, sys.stdout = sys.stdout, sys.stderr
#: What the classes below can do.
CAPABILITIES = ["tombstones", "subscription", "commits"]


class Answers:
    """Writes each call's one answer, from any thread; what a library says after that is dropped."""

    def __init__(self):
        self._lock = threading.Lock()
        self._open = {}

    def expect(self, call):
        """Remember a call that has no answer yet."""
        with self._lock:
            self._open[call["call"]] = call["client"]

    def ok(self, call, **result):
        """Say that a call was done."""
        self._answer(call["call"], {"end": "ok", **result})

    def error(self, call, kind, error):
        """Say how a call failed. A refused record was never taken by the library: certainly it was not written."""
        end = "fail" if kind == "refused" else "info"
        words = {"class": kind, "error": type(error).__name__, "words": str(error)}
        self._answer(call["call"], {"end": end, **words})

    def rest(self, last):
        """Answer the calls of a client that the library has left open, before the call that ends it."""
        with self._lock:
            left = [number for number, client in self._open.items() if client == last["client"]]
        for number in left:
            if number != last["call"]:
                self._answer(number, {"end": "info", "class": "failed", "error": "Closed"})

    def event(self, call, **news):
        """Tell news of a call."""
        with self._lock:
            self._write({"call": call["call"], **news})

    def _answer(self, number, result):
        with self._lock:
            if self._open.pop(number, None) is not None:
                self._write({"call": number, **result})

    def _write(self, message):
        ANSWERS.write(json.dumps(message) + "\n")
        ANSWERS.flush()


class Client(threading.Thread):
    """One producer or consumer: a thread does its calls, in their order. A method of the class is one of a call."""

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.answers = answers
        self.calls = queue.SimpleQueue()
        self.library = None
        self.start()

    def run(self):
        """Do calls until the one that ends the client."""
        while True:
            call = self.calls.get()
            try:
                result = getattr(self, call["method"])(call)
            except Exception as error:
                self.answers.error(call, "failed", error)
            else:
                if result is not None:
                    self.answers.ok(call, **result)
            if call["method"] in ("close", "crash"):
                return


class Producer(Client):
    """Sends."""

    def new_producer(self, call):
        """Make the library's producer."""
        self.library = KafkaProducer(**spelled(call["properties"], KafkaProducer.DEFAULT_CONFIG))
        return {}

    def send(self, call):
        """Give a record to the library; it is answered when the library answers."""
        headers = [(name, base64.b64decode(value)) for name, value in (call.get("headers") or {}).items()]
        try:
            sent = self.library.send(
                call["topic"], decoded(call, "value"), decoded(call, "key"), headers, call["partition"]
            )
        except Exception as error:  # it does not take the record
            self.answers.error(call, "refused", error)
        else:
            sent.add_callback(lambda told: self.answers.ok(call, offset=told.offset if told.offset >= 0 else None))
            sent.add_errback(lambda error: self.answers.error(call, "failed", error))

    def close(self, call):
        """Give up what was not sent, and close the connections within the time limit."""
        if self.library is not None:
            self.library._sender.force_close()  # noqa: SLF001 - close() alone would send what waits
            self.library.close(timeout=call["timeout_ms"] / 1000)
        self.answers.rest(call)
        return {}

    crash = close


class Consumer(Client):
    """Reads."""

    def __init__(self, answers):
        self.woken = threading.Event()
        super().__init__(answers)

    def new_consumer(self, call):
        """Make the library's consumer."""
        self.library = KafkaConsumer(**spelled(call["properties"], KafkaConsumer.DEFAULT_CONFIG))
        return {}

    def assign(self, call):
        """Read these log partitions, from an offset or from the start."""
        begins = {TopicPartition(each["topic"], each["partition"]): each.get("offset") for each in call["offsets"]}
        self.library.assign(list(begins))
        for partition, offset in begins.items():
            if offset is None:
                self.library.seek_to_beginning(partition)
            else:
                self.library.seek(partition, offset)
        return {}

    def poll(self, call):
        """Records, in short steps, so that a call to wake up ends it."""
        left_ms, records = call["timeout_ms"], []
        while not records:
            step_ms = min(left_ms, 100)
            records = [each for some in self.library.poll(timeout_ms=step_ms).values() for each in some]
            left_ms -= step_ms
            if left_ms <= 0 or self.woken.is_set():
                break
        self.woken.clear()
        return {"records": [record_of(each) for each in records]}

    def ends(self, call):
        """The end of each log partition."""
        ends = self.library.end_offsets(partitions(call), timeout_ms=call["timeout_ms"])
        return {"offsets": [offset_of(partition, offset) for partition, offset in ends.items()]}

    def subscribe(self, call):
        """Join the group, and tell what it assigns."""
        self.library.subscribe(call["topics"], listener=Listener(self, call))
        self.library.topics()
        return {}

    def commit(self, call):
        """Commit offsets of the group."""
        offsets = {
            TopicPartition(each["topic"], each["partition"]): OffsetAndMetadata(each["offset"], "", -1)
            for each in call["offsets"]
        }
        self.library.commit(offsets, timeout_ms=call["timeout_ms"])
        return {}

    def committed(self, call):
        """The offsets that the group has; it may have none."""
        asked = {each: self.library.committed(each, timeout_ms=call["timeout_ms"]) for each in partitions(call)}
        return {"offsets": [offset_of(each, offset) for each, offset in asked.items() if offset is not None]}

    def close(self, call):
        """Leave the group and close the connections within the time limit."""
        if self.library is not None:
            self.library.close(autocommit=False, timeout_ms=call["timeout_ms"])
        self.answers.rest(call)
        return {}

    crash = close


class Listener(ConsumerRebalanceListener):
    """Tells what a group leaves to a member."""

    def __init__(self, consumer, call):
        self._consumer = consumer
        self._call = call

    def on_partitions_assigned(self, _):
        """Tell all that the member has now."""
        left = [{"topic": each.topic, "partition": each.partition} for each in self._consumer.library.assignment()]
        generation = self._consumer.library.group_metadata().generation_id
        self._consumer.answers.event(self._call, event="assigned", partitions=left, generation=generation)

    def on_partitions_revoked(self, _):
        """Tell that nothing is left: this library takes all away before it assigns."""
        self._consumer.answers.event(self._call, event="assigned", partitions=[])


def spelled(properties, known):
    """Kafka's properties as arguments of kafka-python, as far as it knows them."""
    own = {name.replace(".", "_"): text for name, text in properties.items()}
    own |= {"ssl_cafile": own.get("ssl_ca_location"), "ssl_certfile": own.get("ssl_certificate_location")}
    own |= {"ssl_keyfile": own.get("ssl_key_location"), "sasl_plain_username": own.get("sasl_username")}
    own |= {"sasl_plain_password": own.get("sasl_password")}
    own["bootstrap_timeout_ms"] = own["request_timeout_ms"]  # else its constructor waits for half a minute
    return {name: read(text) for name, text in own.items() if name in known and text is not None}


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


def main():
    """Say hello, then hand each call to its client until standard input ends."""
    answers, clients = Answers(), {}
    hello = {"hello": 1, "name": "kafka-python", "version": kafka.__version__, "capabilities": CAPABILITIES}
    ANSWERS.write(json.dumps(hello) + "\n")
    ANSWERS.flush()
    for line in sys.stdin:
        call = json.loads(line)
        number, method = call["client"], call["method"]
        if method == "wake_up":
            if number in clients:
                clients[number].woken.set()
            continue
        if number not in clients:
            clients[number] = (Producer if method == "new_producer" else Consumer)(answers)
        answers.expect(call)
        clients[number].calls.put(call)
        if method in ("close", "crash"):
            del clients[number]


if __name__ == "__main__":
    main()
