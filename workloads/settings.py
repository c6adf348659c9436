"""The settings of one run, under Kafka's own names: they decide what the log promises.

A setting belongs to a topic, a broker or a client. The rest ("reference") are rules of replication that Apache
Kafka fixed once per release and that only the reference broker can switch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, TypeAlias, get_args

from workloads.eras import NO_ERA, PRESETS
from workloads.planted_bugs import PlantedBug
from workloads.quoting import shown, unknown_name

Scope = Literal["topic", "broker", "client", "consumer", "transactions", "compaction", "reference"]
Truncation = Literal["high-watermark", "kip-101", "kip-279", "kip-320", "on-fetch"]
CommitRule = Literal["isr", "majority"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]
GroupProtocol = Literal["classic", "consumer"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
OffsetReset = Literal["earliest", "latest"]
CommitMode = Literal["after-processing", "before-processing", "auto"]
CleanupPolicy = Literal["delete", "compact", "compact,delete"]
LeaderElection = Literal["isr", "largest-log-end", "largest-epoch-and-log-end"]
MissedEpoch = Literal["forget", "kafka"]
ProducersAfterRestart = Literal["all-batches", "last-batch"]
IdempotenceWindow = Literal["partition", "connection"]

#: Switches for defects that Apache Kafka and its clients have: no user asks for them, and no promise knows them
#: (docs/decisions/022, 027).
KAFKA_DEFECTS = ("missed.epoch", "producers.after.restart", "idempotence.window")
ACKS_ALL = -1
#: Kafka's types: a 32-bit number, and a 64-bit one for what may be "never", the default of flush.messages and flush.ms.
INT_MAX = 2**31 - 1
#: Batches of a producer that a broker knows again.
IDEMPOTENT_IN_FLIGHT_MAX = 5
NEVER = 2**63 - 1
#: The most bytes of a batch that brokers take by default (message.max.bytes), less what a batch costs by itself.
BATCH_BYTES_MAX = 1_048_500
#: Longer than anything waits in a run; a limit beyond it is one that a run never sees.
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
#: Kafka's default of retention.ms. No run lasts as long.
RETENTION_MS = 7 * _DAY_MS
#: Kafka's default of offsets.retention.minutes, as long.
OFFSETS_RETENTION_MINUTES = 7 * 24 * 60
#: The least of it in a run: below 3 s some final readers met logs that were empty before they had read anything.
RETENTION_MS_LEAST = 5_000
#: The one setting whose default is the client library's own; see :attr:`Settings.against_idempotence`.
IDEMPOTENCE = "enable.idempotence"
#: KIP-250's name.
QUORUM = "quorum.required.acks"
#: Below it not even an idle machine answers every request in time, so nothing would be acknowledged.
_ANSWER_MS = 10
#: kafka-python closes connections that were idle for 540 s, and refuses to wait for an answer as long as that.
_IDLE_MS = 540_000


#: A value of a setting, as files hold it under the setting's name.
SettingValue: TypeAlias = bool | int | float | str | None


class SettingsError(ValueError):
    """A setting is unknown, has the wrong type, or contradicts another. The text says what to write instead."""


class ImpossibleValueError(SettingsError):
    """A setting cannot have this value, whatever the others are."""


def _setting(
    name: str,
    scope: Scope,
    default: Any,
    *,
    choices: tuple[Any, ...] = (),
    least: int = 1,
    most: int | None = None,
    counts_in: str = "",
) -> Any:
    limit = most or (_HOUR_MS if name.endswith(".ms") else INT_MAX)
    metadata = {"name": name, "scope": scope, "choices": choices, "bounds": (least, limit), "counts_in": counts_in}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One choice of every setting. Times are milliseconds where the name ends in ``_ms``.

    ``enable_idempotence`` is false by default: the client's own choice is not known here. Plans, which
    know the client, ask it (:class:`harness.plan.RunSpec`).
    """

    acks: int = _setting("acks", "client", ACKS_ALL, choices=(ACKS_ALL, 0, 1))
    """Copies that answer a write: 0 none, 1 the leader's, -1 (`all`) those of the in-sync replicas."""
    enable_idempotence: bool = _setting(IDEMPOTENCE, "client", False)
    """Brokers know a batch again that is sent twice, and keep the order of a producer's batches."""
    retries: int = _setting("retries", "client", INT_MAX, least=0)
    """Times that a producer sends a batch again."""
    max_in_flight: int = _setting("max.in.flight.requests.per.connection", "client", 5)
    """Requests of a producer to one broker that wait for an answer at the same time."""
    request_timeout_ms: int = _setting("request.timeout.ms", "client", 1_500, least=_ANSWER_MS, most=_IDLE_MS - 1)
    """Time that a client waits for one answer."""
    delivery_timeout_ms: int = _setting("delivery.timeout.ms", "client", 5_000)
    """Time after which a producer gives a write up; at least `linger.ms` and `request.timeout.ms` together."""
    retry_backoff_ms: int = _setting("retry.backoff.ms", "client", 100)
    """Pause before a batch is sent again."""
    linger_ms: int = _setting("linger.ms", "client", 0, least=0)
    """Time that a producer waits for more records of one batch."""
    batch_size: int = _setting("batch.size", "client", 16_384, most=BATCH_BYTES_MAX)
    """Bytes of records of one log partition after which a batch is full; a larger record has a batch of its own."""
    compression_type: Compression = _setting(  # noqa: RUF009
        "compression.type", "client", "none", choices=get_args(Compression)
    )
    """Codec of a producer's batches. Models of clients compress nothing."""
    isolation_level: IsolationLevel = _setting(  # noqa: RUF009 (a field, made by dataclasses.field)
        "isolation.level", "consumer", "read_uncommitted", choices=get_args(IsolationLevel)
    )
    """Consumers read all records, or only those of committed transactions and those of none."""
    group_protocol: GroupProtocol = _setting(  # noqa: RUF009
        "group.protocol", "consumer", "classic", choices=get_args(GroupProtocol), counts_in="grouped"
    )
    """Members assign the partitions of a group, or, as `consumer`, the brokers (KIP-848)."""
    session_timeout_ms: int = _setting("session.timeout.ms", "consumer", 6_000, least=100, counts_in="grouped")
    """Silence after which a group gives a member up."""
    commit_mode: CommitMode = _setting(  # noqa: RUF009
        "commit.mode", "consumer", "after-processing", choices=get_args(CommitMode), counts_in="grouped"
    )
    """Members of a group commit after they process (at least once) or before, or their library commits by itself."""
    auto_offset_reset: OffsetReset = _setting(  # noqa: RUF009
        "auto.offset.reset", "consumer", "earliest", choices=get_args(OffsetReset), counts_in="grouped"
    )
    """Members of a group begin at the start of a log partition, or at its end, where the group has no offset."""
    transaction_timeout_ms: int = _setting(
        "transaction.timeout.ms", "transactions", 10_000, least=1_000, counts_in="transactional"
    )
    """Time after which brokers abort a transaction that its producer does not end."""
    cleanup_policy: CleanupPolicy = _setting(  # noqa: RUF009
        "cleanup.policy", "compaction", "delete", choices=get_args(CleanupPolicy)
    )
    """The topic keeps all records, or, as `compact`, the last record of each key."""
    segment_ms: int = _setting("segment.ms", "compaction", 7 * _DAY_MS, most=NEVER)
    """Age at which a log begins a new segment; the newest segment is never cleaned."""
    min_cleanable_dirty_ratio: float = _setting("min.cleanable.dirty.ratio", "compaction", 0.5, least=0, most=1)
    """Share of a log that was not cleaned yet, from which on it is cleaned."""
    delete_retention_ms: int = _setting("delete.retention.ms", "compaction", _DAY_MS, least=0, most=NEVER)
    """Time for which a tombstone, or the marker of a transaction, stays after it was first cleaned."""
    min_compaction_lag_ms: int = _setting("min.compaction.lag.ms", "compaction", 0, least=0, most=NEVER)
    """Age below which a record is not cleaned."""
    retention_ms: int = _setting("retention.ms", "compaction", RETENTION_MS, least=-1, most=NEVER)
    """Age at which a segment of a topic that is not compacted goes, read or not; -1 is never."""
    replication_factor: int = _setting("replication.factor", "topic", 3)
    """Copies of each log partition."""
    min_insync_replicas: int = _setting("min.insync.replicas", "topic", 1)
    """In-sync replicas below which a write with `acks=all` is refused."""
    unclean_leader_election_enable: bool = _setting("unclean.leader.election.enable", "topic", False)
    """A replica that is not in sync may lead where no other is left."""
    flush_messages: int = _setting("flush.messages", "topic", NEVER, most=NEVER)
    """Records after which a log is forced to the disk; 1 before each is acknowledged."""
    flush_ms: int = _setting("flush.ms", "topic", NEVER, most=NEVER)
    """Time after which a log is forced to the disk."""
    replica_lag_time_max_ms: int = _setting("replica.lag.time.max.ms", "broker", 1_500)
    """Lag after which a follower leaves the in-sync replicas."""
    replica_fetch_wait_max_ms: int = _setting("replica.fetch.wait.max.ms", "broker", 500)
    """Time that a leader holds a follower's fetch that has nothing to read."""
    replica_fetch_backoff_ms: int = _setting("replica.fetch.backoff.ms", "broker", 100)
    """Pause of a follower after a fetch that failed."""
    broker_session_timeout_ms: int = _setting("broker.session.timeout.ms", "broker", 1_500)
    """Silence after which the controller fences a broker."""
    broker_heartbeat_interval_ms: int = _setting("broker.heartbeat.interval.ms", "broker", 300)
    """Pause between a broker's reports to the controller."""
    unclean_leader_election_interval_ms: int = _setting("unclean.leader.election.interval.ms", "broker", 2_000)
    """Pause between the controller's looks for partitions that an unclean election may help."""
    replica_high_watermark_checkpoint_interval_ms: int = _setting(
        "replica.high.watermark.checkpoint.interval.ms", "broker", 5_000
    )
    """Pause between two times at which a broker writes down the high watermarks of its replicas."""
    offsets_retention_minutes: int = _setting("offsets.retention.minutes", "broker", OFFSETS_RETENTION_MINUTES)
    """Time after which a group without members is forgotten, with its offsets."""
    era: str = _setting("era", "reference", NO_ERA, choices=tuple(PRESETS))
    """Defaults of these settings, and of unclean elections, as one release had them; what a plan names wins."""
    truncation: Truncation = _setting(  # noqa: RUF009 (a field, made by dataclasses.field)
        "truncation", "reference", "on-fetch", choices=get_args(Truncation)
    )
    """The rule by which a new follower finds where to cut its log (rules 16, 17)."""
    strict_min_isr: bool = _setting("strict.min.isr", "reference", True)
    """The high watermark waits while the ISR is below `min.insync.replicas` (rule 7)."""
    isr_join_epoch_rule: bool = _setting("isr.join.epoch.rule", "reference", True)
    """A follower joins the ISR only with the start of the leader epoch (rule 11)."""
    fetch_fencing: bool = _setting("fetch.fencing", "reference", True)
    """Leaders look at the leader epoch of a fetch (rules 6, 17)."""
    broker_epochs: bool = _setting("broker.epochs", "reference", True)
    """A quick restart of a broker is noticed (rule 20)."""
    unclean_elections: bool = _setting("unclean.elections", "reference", True)
    """The controller acts on `unclean.leader.election.enable`, as all do but KRaft's before 3.9 (rule 14)."""
    eligible_leader_replicas: bool = _setting("eligible.leader.replicas", "reference", False)
    """A replica that left a small ISR remains electable (rule 15, KIP-966)."""
    follower_fetching: bool = _setting("follower.fetching", "reference", False)
    """Consumers, each in the rack of one broker, read from a follower there that is in sync (rule 22, KIP-392)."""
    replica_lag_max_messages: int = _setting("replica.lag.max.messages", "reference", NEVER, most=NEVER)
    """Records behind the leader at which a follower leaves the ISR, up to 0.8.2 (rule 12)."""
    missed_epoch: MissedEpoch = _setting(  # noqa: RUF009
        "missed.epoch", "reference", "forget", choices=get_args(MissedEpoch)
    )
    """A leader that missed an epoch forgets its followers' log ends, or, as `kafka`, counts them (rule 30)."""
    producers_after_restart: ProducersAfterRestart = _setting(  # noqa: RUF009
        "producers.after.restart", "reference", "all-batches", choices=get_args(ProducersAfterRestart)
    )
    """Batches of a producer that a restarted broker knows again; Kafka knows the last one (rule 21)."""
    idempotence_window: IdempotenceWindow = _setting(  # noqa: RUF009
        "idempotence.window", "reference", "partition", choices=get_args(IdempotenceWindow)
    )
    """The unit for which a client counts its five batches under way; Kafka's Java client: a connection (rule 21)."""
    commit_rule: CommitRule = _setting("commit.rule", "reference", "isr", choices=get_args(CommitRule))  # noqa: RUF009
    """The ISR commits a record, or, as in Raft, a majority that has it on its disks (rule 28)."""
    quorum_required_acks: int = _setting(QUORUM, "reference", -1, least=-1)
    """Copies after which `acks=all` is answered, whichever they are; -1 is off (rule 27, KIP-250)."""
    leader_election: LeaderElection = _setting(  # noqa: RUF009
        "leader.election", "reference", "isr", choices=get_args(LeaderElection)
    )
    """The rule of election where a number of copies commits (rules 13, 27, 28)."""
    tombstones_wait_for_replicas: bool = _setting("tombstones.wait.for.replicas", "reference", False)
    """Tombstones and markers stay until every replica's cleaner was past them. Kafka has no such rule (rule 32)."""
    transaction_version: int = _setting("transaction.version", "reference", 2, choices=(1, 2))
    """With 2 each end of a transaction raises the producer epoch (rule 39), as Java clients of Kafka since 4.0 do."""
    planted_bug: PlantedBug = _setting("planted.bug", "reference", "none", choices=get_args(PlantedBug))  # noqa: RUF009
    """One rule in a wrong form, to find out whether the checkers notice."""

    def __post_init__(self) -> None:
        if self.min_insync_replicas > self.replication_factor:
            raise SettingsError(
                f"min.insync.replicas={self.min_insync_replicas} can never be met with "
                f"replication.factor={self.replication_factor}; lower the first or raise the second"
            )
        if self.enable_idempotence and (obstacle := self.against_idempotence):
            raise SettingsError(
                f"{IDEMPOTENCE}=true {obstacle}; Kafka clients refuse it, or drop it where it is a default: take its "
                "line out, or exclude the combination with [[matrix.exclude]]"
            )
        self._check_quorum()
        self._check_times()

    @property
    def against_idempotence(self) -> str | None:
        """The obstacle to idempotent producers, in words after ``enable.idempotence=true``, or None (KIP-679)."""
        if self.acks != ACKS_ALL:
            return f'needs acks="all", not {self.acks}'
        if self.max_in_flight > IDEMPOTENT_IN_FLIGHT_MAX:
            return (
                f"allows at most max.in.flight.requests.per.connection={IDEMPOTENT_IN_FLIGHT_MAX}, not "
                f"{self.max_in_flight}"
            )
        return None if self.retries else "needs retries of at least 1, not 0"

    @property
    def answer_limit_ms(self) -> int:
        """The longest time of a producer for one write: until it gives up, and one request that is then under way."""
        return self.delivery_timeout_ms + self.request_timeout_ms

    @property
    def elects_uncleanly(self) -> bool:
        """True if a replica that is not in sync may lead: the topic's setting allows it, and the controller asks it."""
        return self.unclean_leader_election_enable and self.unclean_elections

    @property
    def expires(self) -> bool:
        """True if records go when they are older than retention.ms, and a run may see it."""
        return "delete" in self.cleanup_policy and 0 <= self.retention_ms < RETENTION_MS

    @property
    def group_retention_ms(self) -> int | None:
        """`offsets.retention.minutes` in milliseconds, None where no run is as long."""
        minutes = self.offsets_retention_minutes
        return minutes * 60_000 if minutes < OFFSETS_RETENTION_MINUTES else None

    @property
    def commits_by_number(self) -> bool:
        """True if any replicas of a given number commit a record (rules 27, 28), and not the in-sync ones."""
        return self.quorum_required_acks > 0 or self.commit_rule == "majority"

    @property
    def copies(self) -> int:
        """Replicas that have a record once acks=all is answered: min.insync.replicas, or as many as must commit it."""
        if self.commit_rule == "majority":
            return self.replication_factor // 2 + 1
        return self.quorum_required_acks if self.commits_by_number else self.min_insync_replicas

    @property
    def flushes_first(self) -> bool:
        """True if a replica forces a record to its disk before it answers for it (rules 24, 28)."""
        return self.flush_messages == 1 or self.commit_rule == "majority"

    def _check_quorum(self) -> None:
        """Refuse combinations that KIP-250 excludes, and rules that do not fit each other."""
        chosen, majority, by_log = (
            self.quorum_required_acks,
            self.commit_rule == "majority",
            self.leader_election != "isr",
        )
        if chosen != -1 and not 1 < chosen < self.replication_factor:
            raise SettingsError(
                f"{QUORUM}={chosen} must be more than 1 and less than replication.factor={self.replication_factor} "
                "(KIP-250); -1 turns it off"
            )
        if majority and (chosen != -1 or self.leader_election != "largest-epoch-and-log-end"):
            raise SettingsError(
                f"commit.rule=majority needs leader.election=largest-epoch-and-log-end and no {QUORUM}: a majority "
                "elects the replica with the newest log"
            )
        if by_log and not self.commits_by_number:
            raise SettingsError(
                f"leader.election={self.leader_election} needs {QUORUM} or commit.rule=majority: it looks for "
                "records that a number of replicas have; set one of the two"
            )
        if by_log and (self.unclean_leader_election_enable or self.eligible_leader_replicas):
            raise SettingsError(
                f"leader.election={self.leader_election} elects by the logs alone; leave out "
                "unclean.leader.election.enable and eligible.leader.replicas"
            )

    def _check_times(self) -> None:
        """Refuse times that Kafka's clients and brokers refuse, or that could never be stable."""
        least_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least_ms:
            raise SettingsError(
                f"delivery.timeout.ms={self.delivery_timeout_ms} is less than linger.ms + request.timeout.ms={least_ms}"
                ", and Kafka clients refuse that; raise it"
            )
        if self.expires and self.retention_ms < RETENTION_MS_LEAST:
            raise SettingsError(
                f"retention.ms={self.retention_ms} is less than {RETENTION_MS_LEAST}, so records would go before the "
                "final readers come to them; raise it"
            )
        if self.replica_fetch_wait_max_ms > self.replica_lag_time_max_ms:
            raise SettingsError(
                f"replica.fetch.wait.max.ms={self.replica_fetch_wait_max_ms} is more than "
                f"replica.lag.time.max.ms={self.replica_lag_time_max_ms}, so idle followers would leave the ISR; "
                "lower the first or raise the second"
            )
        if self.broker_heartbeat_interval_ms >= self.broker_session_timeout_ms:
            raise SettingsError(
                f"broker.heartbeat.interval.ms={self.broker_heartbeat_interval_ms} is not less than "
                f"broker.session.timeout.ms={self.broker_session_timeout_ms}, so no broker would stay alive; "
                "lower the first or raise the second"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Settings from Kafka's names, defaults for the rest: those of the ``era`` where one is named.

        Raises:
            SettingsError: unknown name (the nearest is named), wrong type, value outside its choices, or a
                combination that cannot work.
        """
        by_name = {f.metadata["name"]: f for f in fields(cls)}
        chosen: dict[str, Any] = {}
        era = _parse(by_name["era"], values.get("era", NO_ERA))
        for name, value in {**PRESETS[str(era)], **values}.items():
            if name not in by_name:
                raise SettingsError(unknown_name("setting", name, by_name))
            chosen[by_name[name].name] = _parse(by_name[name], value)
        return cls(**chosen)

    @classmethod
    def scoped(cls, scope: Scope) -> list[str]:
        """The settings of ``scope``, by Kafka's names."""
        return [f.metadata["name"] for f in fields(cls) if f.metadata["scope"] == scope]

    @classmethod
    def counting_in(cls) -> dict[str, str]:
        """The settings that do nothing but in workloads of one trait, with it (:class:`workloads.plan.CountsIn`)."""
        return {f.metadata["name"]: f.metadata["counts_in"] for f in fields(cls) if f.metadata["counts_in"]}

    def to_mapping(self) -> dict[str, SettingValue]:
        """Every setting under Kafka's name; ``acks`` -1 is written ``"all"``."""
        named = {f.metadata["name"]: getattr(self, f.name) for f in fields(self)}
        if self.acks == ACKS_ALL:
            named["acks"] = "all"
        return named


def _parse(spec: Field[Any], value: object) -> object:
    name, default, choices = spec.metadata["name"], spec.default, spec.metadata["choices"]
    if name == "acks":
        value = {"all": ACKS_ALL, "0": 0, "1": 1, "-1": ACKS_ALL}.get(str(value), value)
    if name == "era" and type(value) is float:  # 4.1 without quotes
        value = str(value)
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    fits = type(value) is type(default)
    if choices and not (fits and value in choices):
        listed = ", ".join(shown("all" if name == "acks" and choice == ACKS_ALL else choice) for choice in choices)
        raise ImpossibleValueError(f"{name}={shown(value)} is not possible; choose one of {listed}")
    if not fits:
        raise ImpossibleValueError(f"{name} takes {_article(default)}, not {shown(value)}")
    if isinstance(value, int | float) and not isinstance(value, bool) and not choices:
        least, most = spec.metadata["bounds"]
        if math.isnan(value):
            raise ImpossibleValueError(f"{name}=nan is not a number; write a number")
        if value < least:
            raise ImpossibleValueError(f"{name}={value} is too small; the least is {least}")
        if value > most:
            raise ImpossibleValueError(f"{name}={value} is too large; the most is {most}")
    return value


def _article(default: object) -> str:
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}[type(default)]
