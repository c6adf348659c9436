"""Search among simulated runs: single ones in memory."""

from harness.search.trial import Broken, Trial, attempt

__all__ = ["Broken", "Trial", "attempt"]
