"""Makes the run's topic over the wire, as a user would."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.errors import InvalidReplicationFactorError, KafkaError, TopicAlreadyExistsError, UnknownBrokerIdError

from harness.ground.errors import StartError
from harness.worlds.clients import named
from workloads import Settings, spelled

_LIMIT_MS: Final = 10_000
#: Brokers that have just joined do not know each other yet, and the client has sent nothing; or the controller has not
#: heard from a broker for a moment, on a busy machine, and counts too few.
_NOT_YET: Final = (UnknownBrokerIdError, InvalidReplicationFactorError)
#: The number of tries of the request then, and the pause between them.
TURNS: Final = 5
_PAUSE_S: Final = 0.5


def topic_configs(settings: Settings) -> dict[str, str]:
    """The settings of the topic as Kafka spells their values; the replication factor is no config."""
    values, usual = settings.to_mapping(), Settings().to_mapping()
    names = [name for name in Settings.scoped("topic") if name != "replication.factor"]
    # The reference broker's server cleans no files, and knows none of these. A cluster may have other defaults.
    compacted = settings.cleanup_policy == "compact"
    names += [name for name in Settings.scoped("compaction") if compacted or values[name] != usual[name]]
    return {name: spelled(values[name]) for name in names}


def create_topic(
    bootstrap: Sequence[str],
    name: str,
    partitions: int,
    settings: Settings,
    assignment: Sequence[Sequence[int]] = (),
) -> None:
    """Create the topic, on the brokers of an ``assignment`` if one is given; return when a broker has confirmed it.

    The cluster is the run's own: an existing topic of that name was made by an attempt whose answer got lost.

    Raises:
        StartError: no broker could be asked, or the cluster refused.
    """
    wanted: dict[str, Any] = {"configs": topic_configs(settings)}
    if assignment:  # then the protocol allows no numbers
        wanted["assignments"] = {number: list(replicas) for number, replicas in enumerate(assignment)}
    else:
        wanted |= {"num_partitions": partitions, "replication_factor": settings.replication_factor}
    asking = {"client_id": "ackproof-admin", "bootstrap_timeout_ms": _LIMIT_MS, "request_timeout_ms": _LIMIT_MS}
    for turn in range(TURNS):
        try:
            with closing(KafkaAdminClient(bootstrap_servers=list(bootstrap), **asking)) as admin:
                admin.create_topics({name: wanted}, timeout_ms=_LIMIT_MS)
        except TopicAlreadyExistsError:
            return
        except KafkaError as error:
            if isinstance(error, _NOT_YET) and turn < TURNS - 1:
                time.sleep(_PAUSE_S)
                continue
            raise StartError(
                f'the cluster did not create topic "{name}": {named(error)}; see the logs of its nodes'
            ) from error
        return
