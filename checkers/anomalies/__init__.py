"""Every anomaly that can appear in a verdict, with its specification: one module for each, or for all of one shape.

A new anomaly is one module and one line in :data:`ANOMALIES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from checkers.anomalies import (
    broken_invariant,
    corrupt_read,
    dead_cleaner,
    divergent_reads,
    divergent_replicas,
    divergent_state,
    divergent_tables,
    duplicate,
    expired_write,
    g1a,
    group_skip,
    group_went_back,
    inconsistent_offsets,
    lost_write,
    out_of_sync,
    phantom_read,
    precommitted_read,
    reordered,
    returned_group,
    returned_key,
    stale_generation,
    two_owners,
    unfenced_instance,
    unfounded_out_of_order,
    unseen,
    wedged_client,
)
from checkers.anomalies.anomaly import Allowed, Anomaly, Finding, Found
from checkers.anomalies.applications import APPLICATIONS
from checkers.anomalies.cycles import CYCLES, EMPTY_GRAPH
from checkers.anomalies.early_cleaning import EARLY_CLEANING
from checkers.anomalies.keyed_effects import KEYED_EFFECTS
from checkers.anomalies.order import ORDER
from checkers.anomalies.pipelines import PIPELINES
from checkers.anomalies.transactions import TRANSACTIONS

__all__ = ["ANOMALIES", "EMPTY_GRAPH", "Allowed", "Anomaly", "Finding", "Findings", "Found"]

#: By name, in the order in which a verdict lists them.
ANOMALIES: Final[dict[str, Anomaly]] = {
    anomaly.name: anomaly
    for anomaly in (
        lost_write.ANOMALY,
        unseen.ANOMALY,
        expired_write.ANOMALY,
        duplicate.ANOMALY,
        inconsistent_offsets.ANOMALY,
        phantom_read.ANOMALY,
        corrupt_read.ANOMALY,
        g1a.ANOMALY,
        *TRANSACTIONS,
        precommitted_read.ANOMALY,
        *ORDER,
        reordered.ANOMALY,
        group_skip.ANOMALY,
        group_went_back.ANOMALY,
        returned_group.ANOMALY,
        two_owners.ANOMALY,
        unfenced_instance.ANOMALY,
        stale_generation.ANOMALY,
        *PIPELINES,
        *APPLICATIONS,
        *KEYED_EFFECTS,
        *CYCLES,
        divergent_replicas.ANOMALY,
        divergent_reads.ANOMALY,
        returned_key.ANOMALY,
        *EARLY_CLEANING,
        dead_cleaner.ANOMALY,
        divergent_state.ANOMALY,
        divergent_tables.ANOMALY,
        broken_invariant.ANOMALY,
        out_of_sync.ANOMALY,
        wedged_client.ANOMALY,
        unfounded_out_of_order.ANOMALY,
    )
}

if TYPE_CHECKING:
    #: By anomaly. Decoding makes the struct of each; anomalies that this version does not know are left out.
    Findings = dict[str, list[Finding]]
else:
    Findings = TypedDict("Findings", {name: list[anomaly.finding] for name, anomaly in ANOMALIES.items()}, total=False)
