"""Consumer groups: who is a member, what each of them may read, and the offsets that groups remember.

To be read in this order:

    consumer                          the members of a group by KIP-848, and what each of them may read
    classic                           the members of a group by the protocol before it
    offsets                           the offsets of a group, and those of open transactions
    group                             what is committed of one group, what is under way, and who waits
    coordinator                       the leader of one log partition of groups
    coordinators                      those of one broker
"""
