"""A campaign: stages over one directory (runs, check, witnesses, report), and what can be done to one run of it."""

from harness.campaign.judge import (
    CheckOptions,
    Counted,
    Judged,
    count_cells,
    is_unreadable,
    judge_all,
    translated_errors,
    write_verdicts,
    write_verdicts_to,
)
from harness.campaign.replaying import Replayed, replay, rerun
from harness.campaign.stages import Campaign
from harness.campaign.witnesses import trace_runs, witness

__all__ = [
    "Campaign",
    "CheckOptions",
    "Counted",
    "Judged",
    "Replayed",
    "count_cells",
    "is_unreadable",
    "judge_all",
    "replay",
    "rerun",
    "trace_runs",
    "translated_errors",
    "witness",
    "write_verdicts",
    "write_verdicts_to",
]
