"""Says what brokers make of a min.insync.replicas that is more than all replicas.

Up to 3.6 they refuse every write with acks=all. Since 3.7 they take it as the number of replicas (KAFKA-15583). Writes
with another acks are accepted in any release, and judged as they are.
"""

from __future__ import annotations

from checkers import counted
from harness.assess.changes import RECOMMENDED, AdvisedChange, Surroundings
from harness.assess.concerns import risk
from harness.records.assessment_file import Concern
from workloads import Settings


def refuses_all(settings: Settings, around: Surroundings) -> bool:
    """True if no write of the producer is ever accepted."""
    return settings.acks == -1 and around.binding and around.demanded > settings.replication_factor


def unwritable(settings: Settings, around: Surroundings) -> Concern:
    """The weakness of a topic that refuses every write of the producer."""
    change = _of_demands(settings)
    return Concern(
        kind="weakness",
        name="unwritable",
        sentence=f"no write with acks=all is ever accepted: {_beyond(settings, around)}",
        change=change.advice(settings, around),
        price=change.price,
    )


def unmet_demand(settings: Settings, around: Surroundings) -> Concern | None:
    """The risk of a topic whose demand is not what it seems to be; None where it is."""
    if around.demanded <= settings.replication_factor:
        return None
    taken = settings.min_insync_replicas
    if around.binding:
        effect = f"it binds no write with acks={settings.acks}, and refuses every write with acks=all"
    else:
        copies = "one copy" if taken == 1 else f"{taken} copies, and is refused while one broker is away"
        effect = f"Kafka since 3.7 takes it as {taken} (KAFKA-15583), so a write with acks=all needs {copies}"
        effect += "; before 3.7 every such write is refused" if around.release is None else ""
    change = _of_demands(settings)
    return risk("unmet-demand", f"{_beyond(settings, around)}; {effect}", change.advice(settings, around), change.price)


def answered_by(settings: Settings) -> str:
    """The name of the change that makes a demand one that can be met."""
    return _of_demands(settings).name


def _of_demands(settings: Settings) -> AdvisedChange:
    """The change for as many in sync as there are replicas: to this the demand is cut, so one of them applies."""
    names = ("replicas", "all-must-be-in-sync")
    return next(change for change in RECOMMENDED if change.name in names and change.applies(settings))


def _beyond(settings: Settings, around: Surroundings) -> str:
    replicas = counted(settings.replication_factor, "replica")
    return f"min.insync.replicas={around.demanded} is more than the {replicas}"
