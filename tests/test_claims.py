"""docs/reference/claims.md: each claim is shown by something that is there and says so; each document is covered."""

from __future__ import annotations

import pytest

from harness.runs.stories import known_stories
from scripts.reference.claims import WrongClaimError, documents, evidence_of

CLAIMS = [claim for document in documents() for claim in document.claim]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says[:60])
def test_each_claim_is_borne_out_by_what_is_said_to_show_it(claim) -> None:
    assert claim.shown
    assert all(evidence_of(entry) for entry in claim.shown)
    assert (claim.holds == "yes") is (claim.but == ""), "what does not hold as it is said needs a reason"


def test_five_documents_are_covered_and_their_surprises_are_said() -> None:
    assert [len(document.claim) > 8 for document in documents()] == [True] * 5
    denied = [claim.says for claim in CLAIMS if claim.holds == "no"]
    assert denied == ["Four replicas and min ISR 3 avoid that.", "So is a SIGKILL of the broker."]


def test_each_story_of_claims_is_cited() -> None:
    cited = {entry.partition(":")[0] for claim in CLAIMS for entry in claim.shown}
    assert {number for number in known_stories() if number.startswith("C")} <= cited


@pytest.mark.parametrize(
    "entry",
    [
        "S01: x lost in all/2",
        "S01: x kept in a1",
        "S06: no leaderless in all/1",
        "S999: x lost in a1",
        "S01: x vanished in a1",
        "plan nothing",
        "plan racks: acks=2",
        "refused acks=1",
        "test tests/test_claims.py::test_of_nothing",
    ],
)
def test_what_does_not_bear_a_claim_out_is_an_error(entry: str) -> None:
    with pytest.raises((WrongClaimError, ValueError)):
        evidence_of(entry)
