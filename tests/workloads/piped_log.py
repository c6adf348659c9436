"""Consume, transform, produce in virtual time: the group of :mod:`tests.workloads.grouped_log`, with transactions."""

from functools import partial

from tests.workloads.grouped_log import SECOND_US, GroupConsumer, GroupedLog
from tests.workloads.leaders import ObedientLeaders
from workloads.client import Assignment, MemberToken, Offsets, SendOutcome
from workloads.driver import Workload
from workloads.operations import EventType
from workloads.plan import WorkloadPlan

OK, INFO = EventType.OK, EventType.INFO
INPUTS = tuple(f"ackproof-{number}" for number in range(3))
OUTPUTS = tuple(f"ackproof-out-{number}" for number in range(3))


class PipedLog(GroupedLog):
    """Transactions are in the log from their commit on; members wait for the offsets of those that are open.

    Defects: ``counts_aborted`` lets offsets of aborted transactions count, ``hurries`` members past open ones,
    ``accepts_stale`` takes offsets of members that were given up. Handings over of offsets whose numbers are in
    ``timed_out`` end with a time-out.
    """

    def __init__(self, clock, timeout_ms):
        super().__init__(clock)
        self.timeout_us = timeout_ms * 1000
        self.owners, self.open = {}, []
        self.counts_aborted = self.hurries = False
        self.handed, self.timed_out = 0, range(0)
        self.records = {name: [] for name in INPUTS}

    def producer(self, process, transactional_id=None):
        if transactional_id is None:
            return super().producer(process)
        return PipedProducer(self, process, transactional_id)

    def consumer(self, process, membership=None, isolation="read_uncommitted"):
        if membership is None:
            return super().consumer(process)
        return PipedConsumer(self, process)

    def deal(self):
        for number, member in enumerate(self.members):
            share = INPUTS[number :: len(self.members)]
            if set(share) != set(member.positions):
                member.positions = dict.fromkeys(share)
                self.later(partial(member.tell, share))

    def pending(self, name):
        return not self.hurries and any(name in producer.offsets for producer in self.open)


class PipedConsumer(GroupConsumer):
    told: frozenset[str] = frozenset()

    def tell(self, share):
        """Nothing is read of a log partition before the member knows that it has it."""
        self.told = frozenset(share)
        self.changed(Assignment(share))

    def _fetch(self):
        for name in [name for name, position in self.positions.items() if position is None]:
            if name in self.told and not self.log.pending(name):
                self.positions[name] = self.log.committed.get(name, 0)
        unknown = [name for name, position in self.positions.items() if position is None or name not in self.told]
        self.positions = {name: position for name, position in self.positions.items() if name not in unknown}
        yield from super()._fetch()
        self.positions |= dict.fromkeys(unknown)

    def ask_member(self, done):
        self.log.later(partial(done, MemberToken(self)))

    def ask_committed(self, partitions, done):
        if any(map(self.log.pending, partitions)):
            self.log.later(partial(done, Offsets({}, "_TIMED_OUT")))
        else:
            super().ask_committed(partitions, done)


class PipedProducer:
    def __init__(self, log, process, transactional_id):
        self.log, self.process, self.transactional_id = log, process, transactional_id
        self.transactions, self.epochs, self.closed = self, None, False
        self.sent, self.offsets, self.turn = [], {}, 0

    @property
    def in_charge(self):
        return self.log.owners.get(self.transactional_id) is self and not self.closed

    def _answer(self, done, outcome=OK, error=None):
        self.log.later(partial(done, SendOutcome(outcome, error=error)))

    def _refuse(self, done, call, error):
        self.log.later(partial(done, SendOutcome.of_call(call, error)))

    def init(self, done):
        if (before := self.log.owners.get(self.transactional_id)) is not None:
            before.end(self.log.counts_aborted)
        self.log.owners[self.transactional_id] = self
        self._answer(done)

    def begin(self, done):
        self.turn += 1
        self.log.open.append(self)
        self.log.clock.call_at(self.log.clock.now_us() + self.log.timeout_us, partial(self._expire, self.turn))
        self._answer(done)

    def _expire(self, turn):
        if turn == self.turn and self in self.log.open:
            self.log.owners.pop(self.transactional_id, None)
            self.end(self.log.counts_aborted)

    def send(self, partition, key, payload, done):
        self.sent.append((partition, (key, payload)))
        self._answer(done, OK if self.in_charge else INFO, "" if self.in_charge else "_FENCED")

    def send_offsets(self, offsets, member, done):
        self.log.give_up()
        self.log.handed += 1
        if self.log.handed in self.log.timed_out:
            self._refuse(done, "send_offsets", "TimeoutException")
            return
        consumer = member.token
        valid = consumer in self.log.members and set(offsets) <= set(consumer.positions)
        if not self.in_charge:
            self._refuse(done, "send_offsets", "_FENCED")
        elif valid or self.log.accepts_stale:
            self.offsets = dict(offsets)
            self._answer(done)
        else:
            self._refuse(done, "send_offsets", "ILLEGAL_GENERATION")

    def commit(self, done):
        if not self.in_charge:
            self._refuse(done, "commit", "_FENCED")
            return
        for partition, record in self.sent:
            self.log.records.setdefault(partition, []).append(record)
        self.end(True)
        self._answer(done)

    def abort(self, done):
        self.end(self.log.counts_aborted)
        self._answer(done)

    def end(self, counts):
        if counts:
            self.log.committed |= self.offsets
        self.sent, self.offsets = [], {}
        if self in self.log.open:
            self.log.open.remove(self)

    def close(self):
        self.closed = True

    def crash(self):
        self.closed = True


def performed(world, events, settings, *, defect="", timed_out=range(0), **plan):
    """Forty seconds of the workload, its end and the final read, on a log with this defect."""
    log = world.clients = PipedLog(world.clock, settings.transaction_timeout_ms)
    log.timed_out = timed_out
    if defect:
        setattr(log, defect, True)
    chosen = WorkloadPlan(name="consume-transform-produce", consumers=3, writes_per_second=30.0, **plan)
    workload = Workload(chosen, settings, clients=log, clock=world.clock, recorder=events)
    workload.begin()
    world.drive(lambda: False, 40 * SECOND_US)
    workload.producers.stop()
    world.drive(lambda: False, 41 * SECOND_US)
    workload.close_clients()
    ending = workload.begin_ending(ObedientLeaders())
    end = ending.finish_group()
    world.drive(lambda: end.finished, 90 * SECOND_US)
    end.end()
    drain = ending.begin_drain({})
    world.drive(lambda: drain.finished, 120 * SECOND_US)
    drain.end()
    world.drive(lambda: False, 121 * SECOND_US)
    assert end.finished
    assert drain.complete
    return log
