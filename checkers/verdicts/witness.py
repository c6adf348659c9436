"""The finding that is shown of a cell, as ``matrix.json`` keeps it."""

from __future__ import annotations

import msgspec

from checkers.anomalies import ANOMALIES, Finding


class Witness(msgspec.Struct, frozen=True):
    """The finding that is shown of a cell: its run, seed, anomaly, the finding as JSON, and its identity.

    The identity is the same in two runs of the same defect; "" in a matrix that 0.1.0 wrote.
    """

    run: str
    seed: int
    anomaly: str
    finding: msgspec.Raw
    identity: str = ""

    def __post_init__(self) -> None:
        """Format the JSON, so that equal findings are equal."""
        msgspec.structs.force_setattr(self, "finding", msgspec.Raw(msgspec.json.format(self.finding, indent=-1)))

    @property
    def shown(self) -> Finding:
        """The finding; only its key if this version does not know the anomaly."""
        kind = ANOMALIES[self.anomaly].finding if self.anomaly in ANOMALIES else Finding
        return msgspec.json.decode(self.finding, type=kind)
