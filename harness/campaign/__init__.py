"""A campaign: stages over one directory (runs, check, witnesses, report), and what can be done to one run of it."""

from harness.campaign.check import (
    CheckOptions,
    Counted,
    JudgedHistory,
    count_cells,
    is_unreadable,
    judge_all,
    translated_errors,
    write_verdicts,
    write_verdicts_to,
)
from harness.campaign.estimating import Estimate, estimate
from harness.campaign.pool import Job, PerformRun, Pool
from harness.campaign.replaying import Replayed, replay, rerun
from harness.campaign.room import room_sentences
from harness.campaign.runs import FAILED_SHARE_MAX, limit_of
from harness.campaign.stages import Campaign, world_runs, write_plan, write_report
from harness.campaign.witnesses import trace_runs, witness

__all__ = [
    "FAILED_SHARE_MAX",
    "Campaign",
    "CheckOptions",
    "Counted",
    "Estimate",
    "Job",
    "JudgedHistory",
    "PerformRun",
    "Pool",
    "Replayed",
    "count_cells",
    "estimate",
    "is_unreadable",
    "judge_all",
    "limit_of",
    "replay",
    "rerun",
    "room_sentences",
    "trace_runs",
    "translated_errors",
    "witness",
    "world_runs",
    "write_plan",
    "write_report",
    "write_verdicts",
    "write_verdicts_to",
]
