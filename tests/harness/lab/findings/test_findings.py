"""Each finding shows what its page says: played on the default release of Kafka, with its controls.

Where one of these fails with a newer release of Kafka or of a library, that has changed: the page has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ground.progress import Progress
from harness.lab.findings import (
    CURES,
    FINDINGS,
    AsDocumented,
    PlayableFinding,
    asked_for,
    compared,
    held_against_page,
    make_patch,
    plays,
)
from harness.worlds.kafka.installation import Installation
from tests.harness.needs import needs_root


def _marks(finding: PlayableFinding) -> list[pytest.MarkDecorator]:
    return [pytest.mark.root, needs_root(*finding.programs)] if finding.programs else []


#: The finding itself with each of its clients, and every other way with its usual one.
PLAYS = [
    pytest.param(number, name, client, marks=_marks(finding), id=f"{number}-{name}-{client}")
    for number, finding in FINDINGS.items()
    for name in finding.ways
    for client in (finding.clients if name == finding.usual else finding.clients_of(name)[:1])
]


@pytest.mark.system
@pytest.mark.finding
@pytest.mark.parametrize(("number", "way", "client"), PLAYS)
def test_a_finding_is_as_its_page_says(number: str, way: str, client: str, real_kafka: Installation) -> None:
    asked = asked_for(FINDINGS[number], way, str(real_kafka.version), client)
    played = list(plays(asked, 1, Progress()))
    assert compared(asked.expected, played) is AsDocumented.YES, played


@pytest.mark.system
@pytest.mark.finding
def test_a_finding_does_not_show_where_its_cure_comes_first(real_kafka: Installation, tmp_path: Path) -> None:
    make_patch(CURES / "008.patch", real_kafka, tmp_path / "patch")
    asked = asked_for(FINDINGS["008"], version=str(real_kafka.version), patch=tmp_path / "patch")
    played = list(plays(asked, 1, Progress()))
    assert held_against_page(asked, played) is AsDocumented.YES, played
