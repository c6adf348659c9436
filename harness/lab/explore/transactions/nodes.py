"""The nodes of a scope of transactions."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from harness.broker.core.transaction_coordinator import LOG
from harness.lab.explore.coordinated_nodes import CoordinatedNodes
from harness.lab.explore.coordinator_node import Servers
from harness.lab.explore.transactions.producers import ProducerNode
from harness.lab.explore.transactions.scope import TransactionScope
from harness.lab.explore.transactions.servers import LeaderNode, PartitionCopy, TransactionCoordinatorNode
from harness.worlds.reference_settings import broker_config, topic_config


class TransactionNodes(CoordinatedNodes[ProducerNode]):
    """All states of nodes that a search has met; ``parts`` are the log partitions, as rules see them."""

    def __init__(self, scope: TransactionScope) -> None:
        settings, partitions = scope.chosen, scope.constants.partitions
        super().__init__(Servers(broker_config(settings), topic_config(settings), partitions, LOG))
        self.parts: dict[int, PartitionCopy] = {}
        #: Under version 1 a producer asks for a new epoch after a record that it has given up.
        self._renews = settings.transaction_version == 1

    def first(self, producers: int) -> list[int]:
        """The first states: of the coordinator, of the leaders, of the producers."""
        leaders = [LeaderNode(number, self.servers) for number in range(self.servers.partitions)]
        clients = [ProducerNode(number, renews=self._renews) for number in range(producers)]
        return self.begin([TransactionCoordinatorNode(self.servers), *leaders, *clients])

    @override
    def _note(self, digest: int, node: Any) -> None:
        if isinstance(node, LeaderNode):
            self.parts[digest] = node.part()
        else:
            super()._note(digest, node)
