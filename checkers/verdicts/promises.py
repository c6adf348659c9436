"""The promise that had to hold: settings, and the faults that took effect, decide which anomalies are permitted.

The reasoning, for a reader who wants to check it. "Rule n" is one of docs/reference/replication-rules.md.

*When is an acknowledged write safe?* With acks=all it is acknowledged once every member of the maximal in-sync
replica set has it (rules 2, 4, 7). A clean election picks a member of that set (rule 13), so every later leader has
it, and a follower only ever truncates to what its leader has (rule 17). SIGKILL, SIGSTOP and a cut link leave every
log as it was: what the operating system holds survives the process (rule 24). So nothing is lost, whatever
min.insync.replicas is: that setting gates the *write* (rule 3) and adds copies, it does not gate the election.

*What opens this?*

* acks=0: no broker answers, so an "acknowledgement" says only that the client let go of the record. Permitted even
  without a fault.
* acks=1: the leader answers alone (rule 2), so any change of leader loses what the followers had not fetched: the
  leader dies, is frozen or cut off past its session, or merely hands over (KAFKA-20554). Receipts do not prove that
  leadership stayed where it was, so every fault that reached a broker or the controller permits it. A fault on
  clients' links does not. Nor does silence: a leader that changed without any such fault has a receipt of its own
  ("unasked"), which counts as one that reached the cluster, and may be an unclean restart by another cause.
* unclean.leader.election.enable=true: with all of the ISR away, a replica outside it leads and everyone truncates to
  it (rules 13, 14). Receipts name brokers, not the ISR of each moment; so this is permitted as soon as a fault
  reached the cluster. With min.insync.replicas = replication.factor every replica had each write when it was
  acknowledged: nothing is lost, unless a reassignment made a broker a replica that was not one then.
* An old rule of truncation or of joining the ISR: see :data:`ERAS`. They all need a change of leader, so a fault.
* A commit rule by number (rules 27, 28) with an election that does not look for what k replicas have: also in
  :data:`ERAS`. With elections by leader epoch and log end among at least RF - k + 1 replicas nothing is lost while
  logs stay as they are (Raft, section 5.4).
* A destroyed copy (power loss, emptied disk, damaged record): a replica may come back without what it acknowledged.
  Where it may have been the last that had it, by log partition: :mod:`checkers.verdicts.copies`.

*What may a consumer see change?* Consumers read below the high watermark only, and that is the smallest log end over
the maximal ISR (rule 7). So a record that was readable is on every member of the ISR, and a clean election keeps it,
*whatever acks is*: with acks=1 the loss hits records above the high watermark, and a deposed leader cannot move its
high watermark because its followers no longer fetch from it and the controller refuses its ISR changes (rules 6, 10).
Readable records are truncated by an unclean election, by the old eras, or after a destroyed copy, and by nothing
else. Before strict min ISR (rule 7, KAFKA-15583) the high watermark also moved with fewer than min.insync.replicas
members, so a readable record may have fewer copies than an acknowledged one.

*Offsets.* `inconsistent-offsets` is also proved by producers alone: a lost write's offset is given to another record,
and both were acknowledged there. So it is permitted where loss is, except at acks=0, where no producer learns an
offset. The same goes for `nonmonotonic-send`: after a loss the new leader's offsets start lower.

*Duplicates.* A retry without idempotence may append again (rule 21), on a slow machine even without any fault. A
duplicate has two places in the log and comparisons of neighbours use the last one, so `poll-skip` and
`nonmonotonic-poll` may follow from a permitted duplicate; see :meth:`Promise.about`.

*Order.* Two acknowledged writes of one producer change places where several batches are in flight and one of them is
sent again, or to another leader, after a later one was appended (rule 21). With idempotence a leader refuses a batch
that is not the next one; with one request in flight the next is sent when the one before has been answered, or given
up, and then it was not acknowledged (at acks=0 that is not known, and it is permitted). A producer that crashed or was
replaced is another one. A lost write has no place in the log, so loss does not make the others reordered. Where
readable records can vanish, a leader may not have what the sequence numbers are compared with (KIP-360), and takes any.

*Transactions.* Readers of committed records see a transaction once its markers are written, and never one that was
aborted: `aborted-read` and `early-read`; readers of uncommitted records have neither. A new producer with a
transactional id ends what the one before left open, and fences it (KIP-98): `zombie`. What its producer does not end,
brokers abort: `hanging-transaction`. All four rest on what brokers keep, of transactions as of records: they are
permitted where readable records may vanish. What permits loss permits a `torn-transaction`, since one proved value
makes all of a transaction due. `failed-send-committed` is the client's own. A request that a held connection delivers
late may end the next transaction of the same producer epoch. That is a known gap of Kafka, which promises only newer
clients and brokers that it cannot be (KIP-890, KIP-1228). It breaks the promise of all or nothing nevertheless, and the
reasons then name the gap.

*Clients.* `wedged-client` is about a client library, so it is always permitted, whatever the settings. So is
`unfounded-out-of-order`, which is about a client library or a broker's memory of a producer: the log has everything.

*Consumer groups.* Commits are records of `__consumer_offsets`, written with acks=all, so `group-went-back`,
`returned-group`, `unfenced-instance` and `stale-generation` are permitted only where a copy was destroyed, or where
readable records can vanish, as by unclean elections (a consumer whose position is gone begins at the start).
`group-skip` is permitted where these can vanish, where members commit before they process, or where they begin at the
end (`auto.offset.reset=latest`). `two-owners` is never permitted: brokers fence a member that was given up.

*Pipelines.* What is read and what is written count together. `doubled-effect` and `unstable-offset` are promised to
readers of committed records only. They, `missing-effect` and `aborted-commit` rest on what brokers keep of records, of
transactions and of groups: all are permitted where a copy was destroyed, or where readable records can vanish.

*Applications under test.* A user's program promises what its plan says. At least once permits a
`doubled-effect`, at most once a `missing-effect`; what permits that readable records or commits vanish permits both,
because it takes outputs, or what a group has committed. `stalled-application` and `crash-loop` are no losses: they make
a run `stalled`. An `unexplained-output` is never permitted, and of a `reordered-effect` and a
`wrong-fold` the checker leaves out what repeats explain.

*Never permitted*: `corrupt-read` (CRC, rule 25), `phantom-read` (no client wrote it), `broken-invariant` (it is looked
at only where it must hold), `out-of-sync` (only where nothing hinders a replica), and any anomaly without a rule here.
Writes whose outcome is unknown (info) are neither lost nor promised; no checker counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from checkers.verdicts.copies import SPARED, FateOfCopies, Reason, fate_of_copies
from checkers.verdicts.receipts import ANY, FaultSeen
from nemesis.faults import ClockStep, fault_kind
from nemesis.scenarios import strikes_of
from workloads import ACKS_ALL, Settings

LOSS = ("lost-write", "unseen")
POLL_ORDER = ("poll-skip", "nonmonotonic-poll", "int-poll-skip", "int-nonmonotonic-poll")
SEND_ORDER = ("nonmonotonic-send", "int-nonmonotonic-send")
STATE = ("returned-key", "divergent-state", "divergent-tables")
#: Promised of compacted logs whose brokers have right clocks.
IN_TIME = ("lost-tombstone", "cleaned-early")
NEVER = (
    "corrupt-read", "phantom-read", "G1a", "broken-invariant", "out-of-sync", "failed-send-committed",
    "unexplained-output",
)  # fmt: skip
#: Promised to readers of committed records only.
OF_COMMITTED = ("aborted-read", "early-read")
OF_REPLICAS = ("divergent-replicas", "divergent-reads")
OF_COMMITS = ("group-went-back", "returned-group")
#: Promised of static members as long as the group's coordinator keeps its state.
OF_STATIC_MEMBERS = ("unfenced-instance",)
#: Promised of groups on the same condition.
OF_GENERATIONS = ("stale-generation",)
OF_TRANSACTIONS = ("zombie", "hanging-transaction")
OF_PIPELINES = ("missing-effect", "aborted-commit")
#: Promised to pipelines whose members, and whose readers, read committed records only.
OF_COMMITTED_PIPELINES = ("doubled-effect", "unstable-offset")
#: Permitted always: what an application has still to do is not lost. The run is `stalled`.
OF_STALLED = ("stalled-application", "crash-loop")
#: Permitted always: records and transactions of different producers may interleave.
ALWAYS = ("int-send-skip", "G0", "G0-realtime")
#: Permitted always, and worth a look: no cleaner is bound to a time.
WARNINGS = ("dead-cleaner",)
#: Permitted always: retention asks no reader.
BY_AGE = ("expired-write",)

#: Findings about client libraries: no log promises anything about them.
OF_CLIENTS = ("wedged-client", "unfounded-out-of-order")


class Claim(msgspec.Struct, frozen=True):
    """The claim about one anomaly. ``reasons`` say why it is permitted, or why it must not happen."""

    anomaly: str
    permitted: bool
    reasons: tuple[Reason, ...]

    def why(self) -> str:
        """Say all reasons, each as a sentence."""
        return " ".join(f"{reason}." for reason in self.reasons)


class Promise(msgspec.Struct, frozen=True):
    """The claims of settings under the faults that took effect."""

    claims: tuple[Claim, ...]

    def about(self, anomaly: str, *, duplicates_seen: bool = False) -> Claim:
        """The claim about one anomaly; an anomaly without a rule is not permitted.

        ``duplicates_seen`` says that the same history holds duplicates. Where these are permitted, their effects on the
        order of polls are permitted with them.
        """
        claims = {claim.anomaly: claim for claim in self.claims}
        if anomaly in POLL_ORDER and duplicates_seen and claims["duplicate"].permitted:
            return Claim(anomaly, permitted=True, reasons=(_AFTER_DUPLICATE, *claims["duplicate"].reasons))
        return claims.get(anomaly) or Claim(anomaly, permitted=False, reasons=(_NO_RULE,))

    @property
    def permits_loss(self) -> bool:
        """True if an acknowledged write may be lost."""
        return self.about("lost-write").permitted

    def sentence(self) -> str:
        """Say what is promised of acknowledged writes, and why, to a reader of the report."""
        claim = self.about("lost-write")
        head = "Acknowledged writes may be lost: " if claim.permitted else "No acknowledged write may be lost: "
        return head + claim.why()


class Era(msgspec.Struct, frozen=True):
    """A rule of an older Kafka, or of a proposal, that truncates records it should keep, and when it is in force."""

    in_force: Callable[[Settings], bool]
    reason: Reason
    diverges: bool


#: Oldest first. ``diverges`` marks those that leave different records at one offset of two replicas.
ERAS: tuple[Era, ...] = (
    Era(
        lambda s: s.truncation == "high-watermark",
        Reason("truncation=high-watermark: a new follower truncates acknowledged records above its lagging "
               "high watermark, then may be elected", "KIP-101, before 0.11"),
        diverges=True,
    ),
    Era(
        lambda s: s.truncation in {"high-watermark", "kip-101"},
        Reason("truncation=kip-101: logs diverge after a fast double change of leader", "KIP-279, before 2.0"),
        diverges=True,
    ),
    Era(
        lambda s: s.truncation in {"high-watermark", "kip-101", "kip-279"} or not s.fetch_fencing,
        Reason("fetches carry no leader epoch: a follower that missed an election is taken back with a "
               "log that was never compared", "KIP-320, KAFKA-6880, before 2.1"),
        diverges=True,
    ),
    Era(
        lambda s: not s.isr_join_epoch_rule,
        Reason("isr.join.epoch.rule=false: a follower joins the in-sync replicas on a lagging high watermark, "
               "without the records of the current epoch", "KAFKA-7128, before 2.0.1"),
        diverges=True,
    ),
    Era(
        lambda s: s.commits_by_number and s.leader_election == "isr",
        Reason("leader.election=isr: with quorum.required.acks an in-sync replica may lack what others acknowledged, "
               "and leads", "rule 27; KIP-250 without its elections, S27"),
        diverges=False,
    ),
    Era(
        lambda s: s.leader_election == "largest-log-end",
        Reason("leader.election=largest-log-end: a deposed leader that wrote more than its successor leads again, "
               "without what that one committed", "rule 27; KIP-250 as written, S28; Raft, section 5.4.1"),
        diverges=False,
    ),
)  # fmt: skip

_NO_RULE = Reason("no rule permits it under any settings", "checkers/verdicts/promises.py")
_NO_FAULT = Reason("no fault took effect", "receipts")
_NO_CLUSTER_FAULT = Reason("faults only touched clients' links, so leaders stayed", "receipts")
_CLEAN = Reason("every in-sync replica has a write before it is acknowledged, only in-sync replicas are elected, and "
                "these faults destroy no copy", "rules 2, 4, 13, 24")  # fmt: skip
_ELECTED = Reason("every in-sync replica has a write before it is acknowledged, and only in-sync replicas are elected",
                  "rules 2, 4, 13")  # fmt: skip
_QUORUM = Reason("enough replicas have a write before it is acknowledged for every election to hear one of them, and "
                 "the largest log by leader epoch and log end leads", "rules 27, 28; Raft, section 5.4")  # fmt: skip
_EVERYWHERE = Reason("min.insync.replicas equals replication.factor, so every replica has a write before it is "
                     "acknowledged", "rules 3, 4")  # fmt: skip
_BELOW_HW = Reason("consumers read below the high watermark, which every in-sync replica has", "rule 7")
_BELOW_QUORUM = Reason("consumers read below the high watermark, which enough replicas have for every election to hear "
                       "one of them", "rules 27, 28")  # fmt: skip
_ACKS_0 = Reason("acks=0: the leader never answers, so nothing is promised about any write", "rule 2")
_ACKS_1 = Reason("acks=1: the leader answers alone, and a fault that moves leadership loses what followers had not "
                 "fetched", "rule 2; KAFKA-20554")  # fmt: skip
_UNCLEAN = Reason("unclean.leader.election.enable=true: with the in-sync replicas away, a replica that lacks the write "
                  "may lead", "rules 13, 14; KIP-106")  # fmt: skip
_REUSED = Reason("the offset of a lost write is given to another record", "rules 1, 17")
_RETRIED = Reason("enable.idempotence=false and retries>0: a retry may append again", "rule 21")
_NO_RETRY = Reason("retries=0: a record is sent once", "rule 21")
_SEQUENCES = Reason("enable.idempotence=true: a leader recognises a batch it has", "rule 21")
_OVERTAKEN = Reason("without idempotence and with several requests in flight, a batch that is sent again, or to "
                    "another leader, may be overtaken by a later one", "rule 21")  # fmt: skip
_IN_ORDER = Reason("one request at a time, or sequence numbers, keep a producer's order", "rule 21")
_PRODUCER_STATE = Reason("with truncated records a leader forgets what it had from a producer", "KIP-360")
_INTERLEAVED = Reason("producers are not isolated from each other, their records may interleave", "KIP-98")
_UNCOMMITTED = Reason("isolation.level=read_uncommitted: readers are given records of open and of aborted transactions",
                      "KIP-98")  # fmt: skip
_STABLE = Reason("readers of committed records stop at the last stable offset, and skip aborted transactions", "KIP-98")
_REPLACED = Reason("a new producer fences the ones before it, and brokers abort what is open for too long",
                 "KIP-98, KIP-360, KIP-890")  # fmt: skip
_LATE_END = Reason("a request to end a transaction that arrives in the next one may end that: known of clients below "
                   "EndTxn v5, and of markers before 4.2.0", "KAFKA-17754, KAFKA-19446, KIP-890; "
                   "docs/findings/009-late-ends.md")  # fmt: skip
_TOGETHER = Reason("offsets count with their transaction, and members are told to wait for those of an open one",
                   "KIP-98, KIP-447")  # fmt: skip
_OF_PLAN = "promise of [application]"
_AT_LEAST = Reason("the application promises at least once: after a fault it may do an input again", _OF_PLAN)
_AT_MOST = Reason("the application promises at most once: after a fault it may pass an input over", _OF_PLAN)
_LATE_EFFECT = Reason("what an application has still to do is not lost; the run is stalled", "a limit of the run")
_CLIENT = Reason("a client library stopped working; the log did what it promises", "docs/guides/clients.md")
_KEPT = Reason("a cleaner keeps records for min.compaction.lag.ms, and tombstones for delete.retention.ms after that",
               "Kafka's design, KIP-534")  # fmt: skip
_NO_TIME = Reason("min.cleanable.dirty.ratio says when a log is cleaned, and no cleaner is bound to a time",
                  "KIP-354, Kafka's documentation of topic settings")  # fmt: skip
_EXPIRED = Reason("a segment goes once its youngest record is older than retention.ms, read or not", "rule 47")
_CLOCK = Reason("a broker's clock was ahead, and its cleaner goes by it", "Kafka's design")
_AHEAD = Reason("a broker's clock was ahead, and retention.ms goes by it", "rule 47")
_AT_MOST_ONCE = Reason("commit.mode=before-processing: what a member committed and did not process is passed over",
                       "Kafka's design, at most once")  # fmt: skip
_RESET = Reason("auto.offset.reset=latest: where the group has no offset, what is there already is passed over",
                "Kafka's documentation of consumer settings")  # fmt: skip
_PROCESSED_FIRST = Reason("a member processes before it commits, and its successor begins at the last commit",
                          "Kafka's design, at least once")  # fmt: skip
_COMMIT_SAFE = Reason("every in-sync replica of __consumer_offsets has a commit before it is acknowledged",
                      "KAFKA-16736, rules 2, 4, 13")  # fmt: skip
_COMMIT_LOST = Reason("a copy was destroyed, and it may have been the last one of __consumer_offsets that was in sync",
                      "rule 24")  # fmt: skip
_FENCED = Reason("the group's coordinator refuses commits of a member that was given up", "KIP-345, KIP-429, KIP-848")
_GENERATIONS = Reason("each generation of a group is later than the last, and kept in __consumer_offsets", "KIP-848")
_AFTER_DUPLICATE = Reason("a duplicated record has two places, and neighbours are compared at the last one", "rule 21")


def promise(settings: Settings, faults: Sequence[FaultSeen], partition: str = ANY, *, application: str = "") -> Promise:
    """Say what ``settings`` promise of one log partition, or of any, under ``faults`` that took effect or may have.

    ``application`` is the promise of an application under test, "" without one. See the module's text.
    """
    copies = fate_of_copies(settings, faults, partition)
    below = _BELOW_QUORUM if settings.commits_by_number else _BELOW_HW
    losses, readable = _loss_reasons(settings, faults, copies), _readable_reasons(settings, faults, copies)
    reused = (_REUSED, *losses) if losses and settings.acks != 0 else ()
    forgotten = _forgotten_reasons(settings, readable)
    duplicates = (*_duplicate_reasons(settings), *forgotten)
    overtaken = _overtaking_reasons(settings)
    late = (_LATE_END,) if any(fault.facts.delivers_late for fault in faults) else ()
    aged = (_AHEAD,) if settings.expires and any(fault.kind == ClockStep.kind for fault in faults) else ()
    clocks = (_CLOCK,) if any(fault.kind == ClockStep.kind for fault in faults) else ()
    forgetful = _went_back_reasons(faults)
    uncommitted = (_UNCOMMITTED,) if settings.isolation_level == "read_uncommitted" else ()
    claims = (
        *(_claim(name, (*losses, *aged), _safe_reasons(settings, faults, copies)) for name in LOSS),
        _claim("torn-transaction", losses, (*_safe_reasons(settings, faults, copies), *late)),
        *(_claim(name, losses, _safe_reasons(settings, faults, copies)) for name in STATE),
        *(_claim(name, (*losses, *clocks), (_KEPT, *_safe_reasons(settings, faults, copies))) for name in IN_TIME),
        _claim("inconsistent-offsets", (*readable, *reused), (below,)),
        *(_claim(name, readable, (below,)) for name in POLL_ORDER),
        _claim("duplicate", duplicates, (_SEQUENCES if settings.enable_idempotence else _NO_RETRY,)),
        _claim("reordered", (*overtaken, *forgotten), (_IN_ORDER,)),
        *(_claim(name, (*overtaken, *duplicates, *reused), (_IN_ORDER,)) for name in SEND_ORDER),
        _claim("group-skip", (*_skip_reasons(settings), *readable), (_PROCESSED_FIRST,)),
        *(_claim(name, (*forgetful, *readable), (_COMMIT_SAFE,)) for name in OF_COMMITS),
        _claim("two-owners", (), (_FENCED,)),
        *(_claim(name, (*forgetful, *readable), (_FENCED,)) for name in OF_STATIC_MEMBERS),
        *(_claim(name, (*forgetful, *readable), (_GENERATIONS,)) for name in OF_GENERATIONS),
        *(_claim(name, _divergence_reasons(settings, faults, copies), (below,)) for name in OF_REPLICAS),
        *(_claim(name, readable, (_STABLE, *late)) for name in OF_COMMITTED),
        *(_claim(name, readable, (_REPLACED,)) for name in OF_TRANSACTIONS),
        *(_claim(name, (*forgetful, *readable), (_TOGETHER, *late)) for name in OF_PIPELINES),
        *(_claim(name, (*uncommitted, *forgetful, *readable), (_TOGETHER,)) for name in OF_COMMITTED_PIPELINES),
        *(_effect_claims((*forgetful, *readable), application) if application else ()),  # of two, the later counts
        *(_claim(name, (_LATE_EFFECT,), ()) for name in OF_STALLED),
        *(_claim(name, (), (_NO_RULE,)) for name in NEVER),
        *(_claim(name, (_INTERLEAVED,), ()) for name in ALWAYS),
        *(_claim(name, (_NO_TIME,), ()) for name in WARNINGS),
        *(_claim(name, (_EXPIRED,), ()) for name in BY_AGE),
        *(_claim(name, (_CLIENT,), ()) for name in OF_CLIENTS),
    )
    return Promise(claims)


def _effect_claims(log_may: tuple[Reason, ...], application: str) -> tuple[Claim, ...]:
    """The claims about effects of an application's inputs; ``log_may`` is why the log itself may be to blame."""
    word = (Reason(f"the application promises the effect of each input {application.replace('-', ' ')}", _OF_PLAN),)
    none = (_AT_MOST,) if application == "at-most-once" else ()
    several = (_AT_LEAST,) if application == "at-least-once" else ()
    return (
        _claim("missing-effect", (*none, *log_may), word),
        _claim("doubled-effect", (*several, *log_may), word),
        *(_claim(name, log_may, word) for name in ("reordered-effect", "wrong-fold")),
    )


def promise_under(settings: Settings, families: Iterable[str]) -> Promise:
    """Say what ``settings`` promise at worst under faults of these families, wherever and however often they hit."""
    kinds = sorted({kind for family in families for kind in strikes_of(family)})
    lies = "lyingdisk" in kinds  # what flushes are worth then is in the receipts of losses of power
    faults = (FaultSeen(kind, clients_only=fault_kind(kind).spares_cluster, took_flushed=lies) for kind in kinds)
    return promise(settings, [fault for fault in faults for _ in range(2)])


def _claim(anomaly: str, permitted_by: tuple[Reason, ...], forbidden_by: tuple[Reason, ...]) -> Claim:
    return Claim(anomaly, permitted=bool(permitted_by), reasons=permitted_by or forbidden_by)


def _reached_cluster(faults: Sequence[FaultSeen]) -> bool:
    return any(not fault.clients_only for fault in faults)


def _on_every_replica(settings: Settings, faults: Sequence[FaultSeen]) -> bool:
    """Tell whether every broker that can lead was an in-sync replica when a write was acknowledged to acks=all."""
    replaced = any(fault.facts.replaces_replica for fault in faults)
    return settings.min_insync_replicas >= settings.replication_factor and not replaced


def _era_reasons(settings: Settings) -> tuple[Reason, ...]:
    return tuple(era.reason for era in ERAS if era.in_force(settings))


def _loss_reasons(settings: Settings, faults: Sequence[FaultSeen], copies: FateOfCopies) -> tuple[Reason, ...]:
    if settings.acks == 0:
        return (_ACKS_0,)
    if not _reached_cluster(faults):
        return ()
    alone = (_ACKS_1,) if settings.acks != ACKS_ALL else ()
    fewer_copies = settings.acks != ACKS_ALL or not _on_every_replica(settings, faults)
    unclean = (_UNCLEAN,) if settings.elects_uncleanly and fewer_copies else ()
    return (*alone, *unclean, *_era_reasons(settings), *copies.destroyed)


def _readable_reasons(settings: Settings, faults: Sequence[FaultSeen], copies: FateOfCopies) -> tuple[Reason, ...]:
    if not _reached_cluster(faults):
        return ()
    fewer_copies = not settings.strict_min_isr or not _on_every_replica(settings, faults)
    unclean = (_UNCLEAN,) if settings.elects_uncleanly and fewer_copies else ()
    return (*unclean, *_era_reasons(settings), *copies.destroyed)


def _safe_reasons(settings: Settings, faults: Sequence[FaultSeen], copies: FateOfCopies) -> tuple[Reason, ...]:
    if not faults:
        return (_NO_FAULT,)
    if not _reached_cluster(faults):
        return (_NO_CLUSTER_FAULT,)
    if {*copies.kept} - SPARED:
        return (*copies.kept, _ELECTED)
    clean = _QUORUM if settings.commits_by_number else _CLEAN
    return (*copies.kept, _EVERYWHERE if settings.elects_uncleanly else clean)


def _forgotten_reasons(settings: Settings, readable: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons why sequence numbers may not help: the leader lacks those of the batches before."""
    return (_PRODUCER_STATE, *readable) if settings.enable_idempotence and readable else ()


def _duplicate_reasons(settings: Settings) -> tuple[Reason, ...]:
    return (_RETRIED,) if not settings.enable_idempotence and settings.retries > 0 else ()


def _overtaking_reasons(settings: Settings) -> tuple[Reason, ...]:
    if settings.acks == 0:
        return (_ACKS_0,)
    return (_OVERTAKEN,) if not settings.enable_idempotence and settings.max_in_flight > 1 else ()


def _skip_reasons(settings: Settings) -> tuple[Reason, ...]:
    first = (_AT_MOST_ONCE,) if settings.commit_mode == "before-processing" else ()
    return (*first, _RESET) if settings.auto_offset_reset == "latest" else first


def _went_back_reasons(faults: Sequence[FaultSeen]) -> tuple[Reason, ...]:
    return (_COMMIT_LOST,) if any(fault.facts.destroys_copy for fault in faults) else ()


def _divergence_reasons(settings: Settings, faults: Sequence[FaultSeen], copies: FateOfCopies) -> tuple[Reason, ...]:
    if not _reached_cluster(faults):
        return ()
    diverging = tuple(era.reason for era in ERAS if era.diverges and era.in_force(settings))
    return (*diverging, *copies.destroyed)
