"""A campaign: stages over one directory (runs, check, witnesses, report), and what can be done to one run of it."""

from harness.campaign.judge import (
    CheckOptions,
    Judged,
    exit_code,
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
    "Judged",
    "Replayed",
    "exit_code",
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
