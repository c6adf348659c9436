"""The kinds of faults of clients."""

from enum import StrEnum


class Breach(StrEnum):
    """A fault of a client."""

    LOST = "lost"
    """It said ok of a record that is not in the log, or that does not count."""
    DOUBLED = "doubled"
    """A record is in the log twice."""
    REORDERED = "reordered"
    """Records of one producer have another order in the log."""
    DENIED = "denied"
    """It said that a call certainly has no effect, and it has."""
    MISPLACED = "misplaced"
    """It told another offset than a record has."""
    UNANSWERED = "unanswered"
    """It did not answer within its own limits."""
    SKIPPED = "skipped"
    """A reader was not given a record that it should have."""
    REPEATED = "repeated"
    """A reader was given a record twice, or one from before its begin."""
    COUNTED = "counted"
    """A record counts that must not: it was aborted, or its writer was fenced."""
    UNTRUE_COMMIT = "untrue commit"
    """It said ok of a commit of offsets that the group does not have."""
