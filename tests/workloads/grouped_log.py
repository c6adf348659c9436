"""A consumer group in virtual time over the perfect log: it deals log partitions out again whenever a member comes."""

from functools import partial

from tests.conftest import PerfectConsumer, PerfectLog
from tests.workloads.leaders import ObedientLeaders
from workloads.client import Assignment, Offsets
from workloads.driver import Workload
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

SECOND_US = 1_000_000


class GroupedLog(PerfectLog):
    """Clients of a perfect log with one group. A member is given up after a session without a poll.

    With ``accepts_stale`` it takes commits of members that were given up.
    """

    def __init__(self, clock, session_ms=2_000):
        super().__init__(clock)
        self.session_us = session_ms * 1000
        self.members, self.committed, self.generation = [], {}, 0
        self.accepts_stale = False

    def consumer(self, process, membership=None, isolation="read_uncommitted"):
        if membership is None:
            return super().consumer(process)
        return GroupConsumer(self, process)

    def deal(self):
        """Give each member its share, and let it go on from what is committed."""
        names = sorted(self.records)
        self.generation += 1
        for number, member in enumerate(self.members):
            share = tuple(names[number :: len(self.members)])
            if set(share) != set(member.positions):
                member.positions = {name: self.committed.get(name, 0) for name in share}
                self.later(partial(member.changed, Assignment(share, self.generation)))

    def give_up(self):
        """Give up members that did not poll for a session."""
        now_us = self.clock.now_us()
        if gone := [member for member in self.members if now_us - member.polled_us > self.session_us]:
            self.members = [member for member in self.members if member not in gone]
            self.deal()


class GroupConsumer(PerfectConsumer):
    def __init__(self, log, process):
        super().__init__(log, process)
        self.subscription = self.commits = self
        self.polled_us = 0

    def subscribe(self, topics, changed):
        self.changed = changed

    def poll(self, max_wait_ms, done):
        self.polled_us = self.log.clock.now_us()
        self.log.give_up()
        if self not in self.log.members and not self.closed:
            self.positions = {}
            self.changed(Assignment(()))
            self.log.members.append(self)
            self.log.deal()
        super().poll(max_wait_ms, done)

    def commit(self, offsets, done):
        self.log.give_up()
        valid = self in self.log.members and set(offsets) <= set(self.positions)
        if valid or self.log.accepts_stale:
            self.log.committed |= offsets
            self.log.later(partial(done, Offsets(dict(offsets))))
        else:
            self.log.later(partial(done, Offsets({}, "UNKNOWN_MEMBER_ID")))

    def ask_committed(self, partitions, done):
        offsets = {name: offset for name, offset in self.log.committed.items() if name in partitions}
        self.log.later(partial(done, Offsets(offsets)))

    def close(self):
        super().close()
        if self in self.log.members:
            self.log.members.remove(self)
            self.log.deal()


def performed(world, events, settings, *, accepts_stale=False, forgets=False, **plan):
    """Twelve seconds of the workload, and the group's end. A group that ``forgets`` has half of its offsets then."""
    world.clients = GroupedLog(world.clock)
    world.clients.accepts_stale = accepts_stale
    world.clients.records = {f"ackproof-{number}": [] for number in range(3)}
    chosen = WorkloadPlan(name="groups", consumers=3, **plan)
    workload = Workload(chosen, settings, clients=world.clients, clock=world.clock, recorder=events)
    workload.begin()
    world.drive(lambda: False, 12 * SECOND_US)
    workload.producers.stop()
    world.drive(lambda: False, 13 * SECOND_US)
    workload.close_clients()
    if forgets:
        world.clients.committed = {name: offset // 2 for name, offset in world.clients.committed.items()}
    end = workload.begin_ending(ObedientLeaders()).finish_group()
    world.drive(lambda: end.finished, 30 * SECOND_US)
    assert end.finished
    end.end()
    return world.clients


def quick(mode="after-processing"):
    return Settings.from_mapping({"session.timeout.ms": 2_000, "commit.mode": mode})
