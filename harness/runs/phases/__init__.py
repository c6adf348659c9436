"""The phases that every run goes through, with a middle of its own: a schedule's faults, or a script's."""

from harness.runs.phases.health import unhealthy
from harness.runs.phases.phases import Middle, Phases, RunReport, opened
from harness.runs.phases.unplanned_events import own_failure

__all__ = ["Middle", "Phases", "RunReport", "opened", "own_failure", "unhealthy"]
