"""Times and numbers are taken out of a node after a step, so that states that differ in nothing else are one.

*Times.* Every message arrives at :data:`NOW_US`. A time that a node remembers is either that, or so long ago that every
limit is over; a time at which something is due is either due or not. Which of the two is changed by events of their own
(a follower is found silent, a backoff is over), at any moment.

*Correlations* tell answers to the open request from answers to an earlier one. A request is numbered by the epoch in
which it was sent, and by how often it was repeated, so an open request and a forgotten one differ, and nothing else.

No other module here reaches into private fields of the core. A field that this one does not know stays in the canonical
form as it is: it may keep states apart that are one, and never makes one of two that differ.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from harness.broker.core.broker import Broker
from harness.broker.core.controller import Controller
from harness.broker.core.effects import Deliver
from harness.broker.core.fetcher import Fetcher
from harness.broker.core.follower import NEVER_US, Follower
from harness.broker.core.groups.coordinator import LOG as GROUPS_LOG
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Message
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import ParkedHeap
from harness.broker.core.transaction_coordinator import LOG
from harness.broker.core.types import NO_NODE, NONE, BrokerConfig, Image, NodeId
from harness.lab.explore.events import NodeEvent

NOW_US: Final = 10**15
#: Nothing is armed.
UNARMED_US: Final = 2**63
#: The time limit of every tombstone that has one, after NOW_US: passes of cleaners come before it or then.
LIMIT_US: Final = 1
#: Correlations that a node gives itself in a step are above this; settled ones are below.
FRESH: Final = 10**9
_PER_EPOCH: Final = 10
_PER_INCARNATION: Final = 10_000

#: A kind of request that is open at most once: what it is, and whom it asks.
Role = tuple[str, int]


def open_requests(broker: Broker) -> dict[Role, int]:
    """The correlations of what a broker waits for."""
    requests: dict[Role, int] = {}
    for leader, fetcher in broker._fetchers.items():
        requests["fetch", leader] = fetcher._in_flight
        for followed in fetcher._followed.values():
            requests["ask", leader] = followed.correlation
    for replica in broker.replicas.values():
        requests["propose", NONE] = NONE if replica.proposal is None else replica.proposal.correlation
    return requests


def given_up(before: Mapping[Role, int], after: Mapping[Role, int], answered: int) -> tuple[int, ...]:
    """The leaders that were asked something that is not open any more, and was not answered."""
    gone = {
        leader
        for (kind, leader), correlation in before.items()
        if kind != "propose" and correlation not in (NONE, answered) and after.get((kind, leader)) != correlation
    }
    return tuple(sorted(gone))


def start_counting(broker: Broker) -> None:
    """Let a new process number its requests as those of a step are numbered."""
    broker._context._correlation = FRESH


def config_of(broker: Broker) -> BrokerConfig:
    """The settings that a broker was started with."""
    return broker._context.config


def timers_of(broker: Broker) -> Iterator[NodeEvent]:
    """The reminders that would do something: to ask a leader again, and to end the waiting of a fetch."""
    for leader, fetcher in broker._fetchers.items():
        if any(followed.ready_us > NOW_US for followed in fetcher._followed.values()):
            yield NodeEvent("retry", leader)
        elif _asks(fetcher):
            yield NodeEvent("again", leader)
    if any(hasattr(parked, "message") for parked in broker._requests._deadlines._waiting.waiting()):
        yield NodeEvent("expire")


def _asks(fetcher: Fetcher) -> bool:
    """The follower waits for an answer of this leader."""
    return fetcher._in_flight != NONE or any(followed.correlation != NONE for followed in fetcher._followed.values())


def settle_controller(controller: Controller) -> None:
    """Take times out of the controller after a step."""
    controller._context.now_us, controller._context.sender = NOW_US, NO_NODE
    controller._heard_us = dict.fromkeys(controller._heard_us, NOW_US)


def fall_silent(controller: Controller, broker: NodeId) -> None:
    """Let the session of a broker be over when the controller looks next."""
    controller._heard_us[broker] = NOW_US - controller._session_us


def settle_broker(broker: Broker, before: dict[Role, int], answered: int, incarnation: int) -> dict[int, int]:
    """Take times and fresh correlations out of a broker after a step; returns what the fresh ones are called now.

    ``before`` are the requests that were open; ``answered`` is the correlation of the step's message, NONE without.
    """
    names: dict[int, int] = {}
    context = broker._context
    context.take()
    context.now_us, context.sender, context._correlation = NOW_US, NO_NODE, FRESH
    epochs = {replica.partition: replica.leader_epoch for replica in broker.replicas.values()}
    for leader in [leader for leader, fetcher in broker._fetchers.items() if not fetcher._followed]:
        del broker._fetchers[leader]  # A new one is made when it is needed, and is the same.
    for leader, fetcher in broker._fetchers.items():
        epoch = incarnation * _PER_INCARNATION + max(epochs.values(), default=0) * _PER_EPOCH
        fetcher._in_flight = _named(fetcher._in_flight, before.get(("fetch", leader)), answered, epoch, names)
        fetcher._sent_us, fetcher._armed_us = NOW_US, UNARMED_US
        for followed in fetcher._followed.values():
            followed.correlation = _named(followed.correlation, before.get(("ask", leader)), answered, epoch, names)
            followed.asked_us = NOW_US
            followed.ready_us = NOW_US + 1 if followed.ready_us > NOW_US else 0
    for replica in broker.replicas.values():
        _settle_limits(replica)
        replica._proposed_us = NOW_US
        if replica.proposal is not None:
            epoch = incarnation * _PER_INCARNATION + replica.partition_epoch * _PER_EPOCH
            correlation = replica.proposal.correlation
            name = _named(correlation, before.get(("propose", NONE)), answered, epoch, names)
            replica.proposal = replace(replica.proposal, correlation=name)
        for follower in replica.followers.values():
            _settle_follower(follower)
            if not context.config.immediate_high_watermark:
                follower.sent_high_watermark = NONE  # Only that rule looks at it.
    forget_unused(broker)
    _settle_parked(broker)
    return names


def _settle_follower(follower: Follower) -> None:
    """Keep of its last fetch only what can still make it caught up: the fetch was recent, the last caught up not."""
    follower.caught_up_us = _recent(follower.caught_up_us)
    follower.fetched_us = max(follower.caught_up_us, _recent(follower.fetched_us))
    if follower.caught_up_us == NOW_US or follower.fetched_us == NEVER_US:
        follower.leader_end_at_fetch = NONE


def _settle_limits(replica: Replica) -> None:
    """Give every tombstone that has a time limit the same one."""
    log, settled_us = replica.log, NOW_US + LIMIT_US
    assert isinstance(log, MemoryLog)  # noqa: S101 - what the disk of a BrokerNode holds
    for position, batch in enumerate(log.batches):
        if batch.delete_horizon_us not in {NONE, settled_us}:
            log.batches[position] = replace(batch, delete_horizon_us=settled_us)


def forget_unused(broker: Broker) -> None:
    """Take out what only a leader looks at: a decision that makes this broker lead brings all of it again.

    Of the controller's image a broker that leads nothing needs the version.
    """
    followed = [replica for replica in broker.replicas.values() if not replica.leading]
    for replica in followed:
        replica.isr = replica.maximal_isr = ()
        replica.partition_epoch = NONE
    if len(followed) == len(broker.replicas):
        broker._context.image = Image(broker.image.version)


def _named(fresh: int, before: int | None, answered: int, epoch: int, names: dict[int, int]) -> int:
    if fresh <= FRESH:
        return fresh
    name = epoch
    if before is not None and before != answered and before // _PER_EPOCH == epoch // _PER_EPOCH:
        name = before + 1
    names[fresh] = name
    return name


def _recent(time_us: int) -> int:
    return NOW_US if time_us >= NOW_US else NEVER_US


def _settle_parked(broker: Broker) -> None:
    """Leave only requests that wait, with deadlines that say what they are and not when they came."""
    requests = broker._requests
    requests._deadlines._armed_us = UNARMED_US
    heaps: list[ParkedHeap[Any]] = [requests._deadlines._waiting, *requests._produces.values()]
    for parked in heaps:
        waiting = [(_deadline(key, request), request) for key, _, request in parked._heap if not request.done]
        waiting.sort(key=lambda entry: (entry[0], _order(entry[1])))
        parked._heap[:] = [(key, position, request) for position, (key, request) in enumerate(waiting)]
        heapq.heapify(parked._heap)
        parked._sequence, parked._swept = len(parked._heap), 32
    for partition in [partition for partition, parked in requests._produces.items() if not parked._heap]:
        del requests._produces[partition]
    followers = requests._fetches._followers
    for node in [node for node, parked in followers.items() if parked.done]:
        del followers[node]


def _deadline(key: int, parked: Any) -> int:
    """Make a deadline relative; a key that is an offset stays as it is."""
    if key < NOW_US:
        return key
    return NOW_US + 1 if hasattr(parked, "message") else NOW_US + 2


def _order(parked: Any) -> int:
    return int(parked.message.replica_id if hasattr(parked, "message") else parked.base_offset)


def let_fetches_wait_no_longer(broker: Broker) -> None:
    """Let the next reminder of deadlines be the one that is armed."""
    broker._requests._deadlines._armed_us = NOW_US


def renumbered(effect: Deliver, names: Mapping[int, int]) -> Message:
    """The message of an effect under the settled name of its correlation; one that was forgotten at once is 0."""
    message = effect.message
    correlation = getattr(message, "correlation", NONE)
    return message if correlation <= FRESH else replace(message, correlation=names.get(correlation, 0))


# --- transaction coordinators ----------------------------------------------------------------------------------------


def settle_coordinator(broker: Broker) -> dict[int, int]:
    """Take times and fresh correlations out of a transaction coordinator; returns what the fresh ones are called now.

    A request is numbered by its log partition: it asks for one thing there at a time, and waits for the newest request
    only. Times of markers and of the next look are taken out; what is overdue is an event of its own.
    """
    coordinator = broker._transactions
    coordinator._look_for_old_us = UNARMED_US
    for transaction in coordinator._transactions.values():
        for partition, sent in transaction.markers.items():
            if sent.at_us != NONE:
                transaction.markers[partition] = replace(sent, at_us=NOW_US)
    order = sorted(coordinator._transactions)
    names: dict[int, int] = {}
    asked = {}
    for correlation, question in coordinator._asked.items():
        part = 0 if question.partition == LOG else 1 + question.partition.partition
        names[correlation] = name = 1 + order.index(question.transactional_id) * _PER_EPOCH + part
        asked[name] = question
    coordinator._asked = dict(sorted(asked.items()))
    _rename_parked(broker, names)
    return names


def _rename_parked(broker: Broker, names: Mapping[int, int]) -> None:
    """Call the writes to the own log that wait as the coordinator calls them now."""
    for parked in broker._requests._produces.values():
        for _, _, request in parked._heap:
            request.correlation = names.get(request.correlation, request.correlation)


def let_transactions_expire(broker: Broker) -> None:
    """Let a coordinator look for transactions that are open for too long when it looks next."""
    broker._transactions._look_for_old_us = 0


def waiting_clients(broker: Broker) -> tuple[int, ...]:
    """The clients that a coordinator answers when the record that is under way is committed."""
    under_way = [transaction.next for transaction in broker._transactions._transactions.values()]
    return tuple(sorted(each.client for each in under_way if each is not None and each.answer is not None))


# --- group coordinators ----------------------------------------------------------------------------------------------


def settle_groups(broker: Broker) -> dict[int, int]:
    """Take times and fresh correlations out of a group coordinator; returns what the fresh ones are called now.

    One change of a group is under way at a time, and a group's is numbered by the group; generations by their order.
    Every member was heard now; one that was not is an event of its own. No joining lasts too long, and a client that
    joins again as a newcomer in one leader epoch gets the name that it had.
    """
    coordinator = broker._groups.on(GROUPS_LOG)
    settle_times_of_groups(coordinator)
    order = sorted(coordinator._groups)
    names = {correlation: 1 + order.index(name) for correlation, name in coordinator._asked.items()}
    names |= {correlation: _PER_EPOCH + number for number, correlation in enumerate(coordinator._generations)}
    coordinator._asked = {names[correlation]: name for correlation, name in coordinator._asked.items()}
    coordinator._generations = {names[correlation]: each for correlation, each in coordinator._generations.items()}
    _rename_parked(broker, names)
    return names


def settle_times_of_groups(coordinator: GroupCoordinator) -> None:
    """Take times, and names that are new each time, out of a group coordinator."""
    coordinator._named = 0
    for group in coordinator._groups.values():
        group.heard_us = dict.fromkeys(group.heard_us, NOW_US)
        group.revoking_us = dict.fromkeys(group.revoking_us, NOW_US)
        if group.classic is not None:
            group.classic.deadline_us = UNARMED_US
            for member in group.classic.members.values():
                member.expires_us = UNARMED_US


def let_member_be_silent(broker: Broker, group: str, member: str) -> None:
    """Let the session of a member be over when the coordinator looks next; a classic one is told by its client."""
    named = group_of(broker, group)
    if named is not None and member in named.heard_us:
        named.heard_us[member] = NEVER_US
    if named is not None and named.classic is not None:
        for each in named.classic.members.values():
            each.expires_us = 0 if each.told.client_id == member else each.expires_us


def group_of(broker: Broker, group: str) -> Group | None:
    """A group as its coordinator knows it; None where no member ever came."""
    return broker._groups.on(GROUPS_LOG)._groups.get(group)
