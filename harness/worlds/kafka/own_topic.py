"""The topic of a run on a cluster that is not the harness's own: made by the run, deleted by it, and no other touched.

The journal knows it as ``topic``, with the facts ``name``, ``bootstrap`` and ``security`` (what the cluster demands,
and where the password is), and ``topic_id`` once the cluster has given one. A topic is deleted by that id, so one
that others have made since under the same name is safe. Where the harness died, or the brokers fell silent, before it
heard the id, a topic of this name may belong to others: it stays, and so does the journal's entry until it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec
from kafka.errors import KafkaError, TopicAlreadyExistsError

from harness.ground.errors import HostError, PlanError
from harness.plan import OPEN, Security
from harness.records.journal import Journal, PendingUndo
from harness.worlds.clients import require_credentials
from harness.worlds.hosts import undo_kinds
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration, TopicImage, UnansweredError
from harness.worlds.kafka.releases import Version
from harness.worlds.real.view import are_whole

KIND: Final = "topic"
#: From the answer "it is created" to every broker of it in sync.
READY_LIMIT_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.1
#: The oldest release that gives topics ids (KIP-516).
IDS_SINCE: Final = (2, 8, 0)
_NO_ID: Final = UUID(int=0)


def require_ids(release: Version) -> None:
    """Refuse a cluster on which the run's topic could not be distinguished from others of its name.

    Raises:
        PlanError: it is too old.
    """
    if release < IDS_SINCE:
        raise PlanError(
            f"a cluster of Kafka {release.major}.{release.minor} gives topics no ids, so a run could not be sure to "
            "delete its own; clusters from Kafka 2.8 on can be used"
        )


class OwnTopic:
    """One topic from :meth:`create` to :meth:`delete`, named in the journal in between."""

    def __init__(
        self,
        administration: Administration,
        journal: Journal,
        name: str,
        bootstrap: tuple[str, ...],
        security: Security = OPEN,
    ) -> None:
        self.name: Final = name
        self._administration = administration
        self._journal = journal
        self._access = {"bootstrap": list(bootstrap), "security": msgspec.to_builtins(security)}
        self._entry: int | None = None
        self._id = _NO_ID

    def create(self, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> TopicImage:
        """Create the topic, and return when every partition has a leader and all replicas in sync.

        Raises:
            HostError: the topic exists already, the cluster refused, or the topic does not get ready.
        """
        if self._administration.topic(self.name) is not None:
            raise HostError(
                f'the cluster has a topic "{self.name}" that this run did not create, so it is left alone; '
                "heal the run that left it (ackproof heal), or choose another topic or seed in the plan"
            )
        self._entry = self._journal.intend(KIND, {"name": self.name, **self._access})
        try:  # where no broker answers it may exist: the journal keeps it
            self._administration.create_topic(self.name, partitions, replication_factor, configs)
        except TopicAlreadyExistsError as error:  # by an earlier try without an answer, or by others since
            raise _doubtful(self.name) from error
        except KafkaError as error:
            self._journal.done(self._entry)
            self._entry = None
            raise HostError(
                f'the cluster did not create the topic "{self.name}" ({type(error).__name__}); change the plan to what '
                "the cluster allows"
            ) from error
        return self._ready(partitions)

    def delete(self) -> None:
        """Delete the topic if it was created. Idempotent.

        Raises:
            HostError: the cluster did not; the journal keeps it.
        """
        if self._entry is not None:
            _delete(self._administration, self.name, self._id)
            self._journal.done(self._entry)
            self._entry = None

    def _ready(self, partitions: int) -> TopicImage:
        deadline = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < deadline:
            image = self._administration.topic(self.name)
            if image is not None and self._id == _NO_ID:
                self._learn(image.topic_id)
            if image is not None and len(image.partitions) == partitions and are_whole(image.partitions.values()):
                return image
            time.sleep(_LOOK_EVERY_S)
        raise HostError(
            f'not every partition of the topic "{self.name}" has a leader and all its replicas after '
            f"{READY_LIMIT_S:.0f} s; repair the cluster first"
        )

    def _learn(self, topic_id: UUID) -> None:
        self._id = topic_id
        if self._entry is not None:
            self._journal.amend(self._entry, {"topic_id": str(topic_id)})


def undo_topics(journal: Journal) -> list[str]:
    """Delete every topic that this journal names; the answer names those that were still there.

    Raises:
        HostError: one is still there, and stays in the journal; every other was deleted.
    """
    return undo_kinds(journal, (KIND,), _undo)


def _undo(action: PendingUndo) -> list[str]:
    name, brokers = str(action.facts["name"]), [str(broker) for broker in action.facts["bootstrap"]]
    topic_id = UUID(str(action.facts.get("topic_id", _NO_ID)))
    security = msgspec.convert(action.facts.get("security", {}), Security)
    require_credentials(security)
    cluster = Administration(lambda: brokers, limit_s=FAR_ASK_LIMIT_S, security=security)
    try:
        return [name] if _delete(cluster, name, topic_id) else []
    finally:
        cluster.close()


def _delete(administration: Administration, name: str, topic_id: UUID) -> bool:
    """True if the topic existed."""
    try:
        if topic_id == _NO_ID:
            if administration.topic(name) is None:
                return False
            raise _doubtful(name)
        return administration.delete_topic(topic_id)
    except (KafkaError, UnansweredError) as error:
        raise HostError(
            f'the topic "{name}" is still there ({type(error).__name__}: {error}); heal the run again (ackproof heal) '
            "when the cluster can be reached, or delete it"
        ) from error


def _doubtful(name: str) -> HostError:
    return HostError(
        f'the cluster has a topic "{name}" that this run may not have made, as its id is not known; look at it, delete '
        "it yourself if it is the run's, and then heal the run (ackproof heal)"
    )
