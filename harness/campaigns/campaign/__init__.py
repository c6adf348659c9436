"""A campaign: stages over one directory (runs, check, witnesses, report), and what can be done to one run of it."""

from harness.campaigns.campaign.continuing import record_of_ended, undo_and_delete
from harness.campaigns.campaign.estimating import Estimate, WorldEstimate, estimate, soak_estimate
from harness.campaigns.campaign.judged_histories import (
    CheckOptions,
    Counted,
    JudgedHistory,
    count_cells,
    is_unreadable,
    judge_all,
    write_verdicts,
    write_verdicts_to,
)
from harness.campaigns.campaign.judging_thread import Checking, begin_session
from harness.campaigns.campaign.pool import Job, PerformRun, Pool
from harness.campaigns.campaign.replaying import Replayed, replay, rerun
from harness.campaigns.campaign.room import room_sentences
from harness.campaigns.campaign.stages import Campaign, is_unbegun, world_runs, write_plan, write_report
from harness.campaigns.campaign.turn_loop import BATCH_MAX, FAILED_SHARE_MAX, STEP_S, Checks, Runs, TurnLoop
from harness.campaigns.campaign.witnesses import trace_runs, witness

__all__ = [
    "BATCH_MAX",
    "FAILED_SHARE_MAX",
    "STEP_S",
    "Campaign",
    "CheckOptions",
    "Checking",
    "Checks",
    "Counted",
    "Estimate",
    "Job",
    "JudgedHistory",
    "PerformRun",
    "Pool",
    "Replayed",
    "Runs",
    "TurnLoop",
    "WorldEstimate",
    "begin_session",
    "count_cells",
    "estimate",
    "is_unbegun",
    "is_unreadable",
    "judge_all",
    "record_of_ended",
    "replay",
    "rerun",
    "room_sentences",
    "soak_estimate",
    "trace_runs",
    "undo_and_delete",
    "witness",
    "world_runs",
    "write_plan",
    "write_report",
    "write_verdicts",
    "write_verdicts_to",
]
