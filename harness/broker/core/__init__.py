"""The reference broker's core: replication as state machines that do no I/O and know no clock.

To be read in this order:

    types, messages, effects          what nodes know, say, and ask their surroundings to do
    transactions, producers           what a log knows of those who write to it
    log, follower, replica            one replica of one partition; commit_rule says what is committed
    fetcher, request_handler          the follower's side of a link, and the leader's
    cleaner                           what stays of a compacted log
    coordinator                       the leader of a log that keeps what a cluster has decided
    transaction_coordinator           which transactions are open in the cluster, and how each ends
    groups                            who is a member of a consumer group, and the offsets that groups remember
    session, broker                   one broker
    election, placement, controller   the cluster
    invariants, planted               what must always hold, and rules that are wrong on purpose
"""
