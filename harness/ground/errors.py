"""Everything that can go wrong with the harness itself, as one tree. Findings are data and never raised.

* ``AckproofError``            base; never raised itself; ``exit_code`` says how the command line ends
    * ``PlanError``            the plan is wrong (64); nothing was started
    * ``HarnessError``         the harness could not do its work (70, if nothing else is listed below)
        * ``StartError``       a node did not start or did not become ready
        * ``PortError``        an address is taken
        * ``ChoicesError``     recorded choices are not those of the run that asks for them
        * ``JavaError``        no usable Java for the checking
        * ``HostError``        this machine lacks what a host needs (root, namespaces, nftables, SSH)
            * ``NotUndoneError``     what a run did is still there
            * ``AccessError``        a cluster does not let us in, or what shall let us in is not there (64)
            * ``NotReachableError``  nor could it be fetched or asked: no server answers, or no program to fetch it (69)
        * ``OutputError``      standard output cannot be written
        * ``ResultsError``     a run directory cannot be read or written
            * ``NamedWronglyError``  what the command line names is not what the command works on (64)
            * ``NoHistoryError``     what is there to be judged is no history (2): nothing is known of it

The text of each is one sentence that says what happened and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

EXIT_HELD = 0
EXIT_BROKEN = 1
EXIT_UNKNOWN = 2
EXIT_PLAN = 64
EXIT_NOT_REACHABLE = 69
EXIT_HARNESS = 70

#: Advice about things that a run left behind.
HEAL_AGAIN: Final = "run `ackproof heal` again, as the user who started it or as root"


class AckproofError(Exception):
    """Base of all; catch it at the command line only."""

    exit_code = EXIT_HARNESS


class PlanError(AckproofError):
    """The plan cannot be run as written: correct the named key."""

    exit_code = EXIT_PLAN


class HarnessError(AckproofError):
    """The harness failed, not the log under test: nothing is claimed about the log."""


class StartError(HarnessError):
    """A node died at its start or was not ready in time: read the log file that the text names."""


class PortError(HarnessError):
    """An address is already in use, and so were the others that were tried: stop what holds them."""


class ChoicesError(HarnessError):
    """Recorded choices end too early or do not fit: perform them with the plan and the version that recorded them."""


class JavaError(HarnessError):
    """PySpark needs Java 17 or later with the module jdk.incubator.vector: install the package that the text names."""


class HostError(HarnessError):
    """This machine cannot offer the host that the plan asks for: choose another host or install what the text names."""


class NotUndoneError(HostError):
    """Something that a run did is still there: heal it again, with the rights of the user who ran it.

    ``remaining`` has a sentence for each thing, ``undone`` names what else was there and is gone now.
    """

    def __init__(self, remaining: Sequence[str], undone: Sequence[str] = ()) -> None:
        super().__init__(f"{'; '.join(remaining)}; {HEAL_AGAIN}")
        self.remaining, self.undone = tuple(remaining), tuple(undone)


class AccessError(HostError):
    """A password or a certificate is missing, or brokers refuse it: correct ``[worlds.kafka.security]`` of the plan."""

    exit_code = EXIT_PLAN


class NotReachableError(HostError):
    """Something is out of this machine's reach, to be fetched or asked: install what fetches it, or see to the network.

    A test that needs it has nothing to test; everything else that goes wrong with fetching is a HostError.
    """

    exit_code = EXIT_NOT_REACHABLE


class OutputError(HarnessError):
    """Standard output cannot be written: make room, or send it elsewhere."""

    @classmethod
    def of(cls, error: OSError) -> OutputError:
        """The refusal for an ``error`` that kept standard output from being written."""
        why = f"standard output cannot be written ({error.strerror or error}); make room or send it elsewhere"
        return cls(f"{why}; what this command wrote into files is there")


class ResultsError(HarnessError):
    """A run directory is missing, unreadable or full: name another one or make room."""


class NamedWronglyError(ResultsError):
    """A path on the command line is not what the command works on: name another one. Nothing was done."""

    exit_code = EXIT_PLAN


class NoHistoryError(ResultsError):
    """A place is there and has no history, so nothing is known: name runs, a campaign, or files with a history."""

    exit_code = EXIT_UNKNOWN
