"""Figures of documents about runs on Kafka are those of the verdicts that are kept (results/reference)."""

from __future__ import annotations

import lzma
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from checkers import Cell, Latency, Outcome, VerdictLine, latest_receipts, percent, quantile_us, wedged_clients
from harness.assess.changes import HARDENING, RECOMMENDED
from harness.campaigns.report import Certificate, certificates_in, exercised_faults, milliseconds
from harness.ground.known_defects import every_defect
from harness.plan import plans_here
from harness.records.campaign_record import read_campaign_record
from harness.records.verdict_lines import read_lines, read_matrix
from scripts.kept_matrices import kept
from scripts.reference import prices
from scripts.reference.losses import CAMPAIGNS, FILE, KEPT, OLDER, kept_matrix, losses, rows_of
from workloads import NEVER, spelled

ROOT: Final = Path(__file__).parent.parent
MATRICES: Final = sorted(path.parent.relative_to(KEPT).as_posix() for path in KEPT.rglob("matrix.json"))
FIVE, ONE = "kafka-five-in-flight-librdkafka", "kafka-no-false-alarm-librdkafka"
PYTHON = "kafka-no-false-alarm-kafka-python"
SHORT, SHORT_PYTHON = "kafka-short-timeout-librdkafka", "kafka-short-timeout-kafka-python"
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
#: The words of the table of `exactly-once` for these anomalies.
WORD_OF_ANOMALY: Final = {
    "torn-transaction": "torn",
    "duplicate": "doubled",
    "two-owners": "late commits",
}
LEDGER: Final = KEPT / "night" / "ledger.jsonl.xz"


def words_of(*page: str) -> str:
    """The text of a page with single spaces."""
    return " ".join(ROOT.joinpath(*page).read_text(encoding="utf-8").split())


def says(page: str, sentence: str) -> bool:
    """True if a page has this sentence, and its figures are not parts of longer ones."""
    return re.search(rf"(?<![\d,.]){re.escape(sentence)}(?![,.]?\d)", page) is not None


@cache
def lines_of(campaign: str) -> tuple[VerdictLine, ...]:
    return tuple(read_lines(KEPT / campaign).lines.values())


def counted_in(campaign: str, anomaly: str) -> tuple[int, int]:
    """The findings of an anomaly in all runs, and the runs that have one."""
    counts = [line.counts.get(anomaly, 0) for line in lines_of(campaign)]
    return sum(counts), sum(count > 0 for count in counts)


def sends_of(campaign: str) -> str:
    """Runs, sends, acknowledged ones, and the least share in a run, as a table has them."""
    runs = [line.exercise for line in lines_of(campaign)]
    sent, acknowledged = sum(run.attempted for run in runs), sum(run.acknowledged for run in runs)
    least = min(run.acknowledged / run.attempted for run in runs)
    written = f"{acknowledged:,} ({percent(acknowledged / sent)})"
    return f"| {len(runs)} | {sent:,} | {written} | {percent(least)} |"


def outcomes_of(campaign: str, **settings: object) -> list[tuple[str, Outcome]]:
    """The world and the outcome of each cell that has these settings; dots of their names are underscores."""
    wanted = {name.replace("_", "."): value for name, value in settings.items()}.items()
    return [(cell.world, cell.outcome) for cell in kept_matrix(campaign).cells if wanted <= cell.settings.items()]


@pytest.mark.parametrize("campaign", MATRICES)
def test_a_matrix_that_is_kept_is_that_of_its_verdicts(campaign: str) -> None:
    def figures(cells: list[Cell]) -> dict[str, tuple[object, ...]]:
        return {
            cell.key: (
                *(cell.outcome, cell.runs, cell.attempted, cell.acknowledged, cell.lost, cell.loss.total),
                {name: (family.took_effect, family.exercised) for name, family in cell.exercised.items()},
                {name: count for name, count in cell.broken.items() if count},
            )
            for cell in cells
        }

    cells = kept_matrix(campaign).cells
    assert cells
    assert figures(cells) == figures(read_matrix(KEPT / campaign).cells)


def test_each_plan_that_promises_a_kept_outcome_has_one() -> None:
    promising = {name for name, path in plans_here().items() if KEPT.relative_to(ROOT).as_posix() in path.read_text()}
    assert "kafka-usual-advice-java" in promising
    assert promising <= {*MATRICES}


def test_the_page_of_losses_is_made_of_the_verdicts_that_are_kept() -> None:
    assert FILE.read_text(encoding="utf-8") == losses()


def test_the_prices_that_assess_names_are_made_of_the_verdicts_that_are_kept() -> None:
    assert prices.FILE.read_bytes() == prices.prices()
    advised = {change.name for change in (*RECOMMENDED, *HARDENING)} | {each.measured for each in every_defect()}
    assert {each.change for each in prices.COMPARED} <= advised


def test_the_table_of_what_settings_cost_without_a_fault_says_what_the_verdicts_say() -> None:
    page = (KEPT / "measurements.md").read_text(encoding="utf-8")
    for client, campaign in (("Java", "kafka-prices-java"), ("librdkafka", "kafka-prices-librdkafka")):
        for cell in kept_matrix(campaign).cells:
            assert (cell.runs, cell.faults, cell.lost) == (5, {}, 0)
            settings = cell.settings
            words = [client, *(spelled(settings[name]) for name in ("acks", "enable.idempotence", IN_FLIGHT))]
            words.append("1" if settings["flush.messages"] == 1 else "never")
            at_most = [quantile_us(cell.latency.calm, share) or 0 for share in (0.5, 0.99)]
            words += [f"{milliseconds(time_us / 1000)}" for time_us in at_most]
            assert f"| {' | '.join(words)} |" in page


def run_line(idempotence: bool, calm: int) -> VerdictLine:
    (line, *_) = lines_of("kafka-prices-java")
    assert line.run is not None
    settings = {**line.run.settings, "acks": "all", "enable.idempotence": idempotence, IN_FLIGHT: 5}
    run = msgspec.structs.replace(line.run, settings={**settings, "flush.messages": NEVER})
    return msgspec.structs.replace(line, run=run, latency=Latency(calm={calm: 10}))


def test_a_price_is_said_only_where_each_run_with_the_change_is_slower_than_each_without_it() -> None:
    (idempotence,) = (each for each in prices.COMPARED if each.change == "idempotence")
    for before, after, seen in (
        ((80, 81), (82, 90), True),
        ((80, 82), (82, 90), False),  # they meet
        ((80, 83), (82, 90), False),  # they overlap
        ((82, 90), (80, 81), False),  # a gain is no price
    ):
        lines = [run_line(False, each) for each in before] + [run_line(True, each) for each in after]
        told = list(prices.seen_price(idempotence, lines))
        assert bool(told) == seen, (before, after)
        assert all(price.runs == 2 and price.before.p50_us < price.after.p50_us for price in told)


def test_every_cell_of_the_newest_campaigns_was_put_to_the_test_five_times() -> None:
    cells = [cell for campaign in CAMPAIGNS for row in rows_of(campaign) for cell in row.cells.values()]
    assert cells
    assert [cell.key for cell in cells if cell.runs < 5 or cell.outcome.proves_nothing or not cell.latency.all] == []


def test_the_results_of_each_client_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    doubled, runs = counted_in(FIVE, "duplicate")
    assert says(page, f"| librdkafka, five in flight {sends_of(FIVE)} {doubled} records doubled in {runs} runs |")
    assert says(page, f"broke a promise in {runs} of {len(lines_of(FIVE))} runs")
    whole = [line.exercise for line in lines_of(FIVE) if line.counts.get("duplicate")]
    assert sum(run.attempted == run.acknowledged for run in whole) == 8
    assert says(page, f"in eight of the {runs} runs every send was acknowledged")
    met = sum(map(exercised_faults, kept_matrix(ONE).cells))
    assert says(page, f"| librdkafka, one in flight {sends_of(ONE)} nothing; {met} faults met writes |")
    struck = sum(receipt.took_effect for line in lines_of(PYTHON) for receipt in latest_receipts(line.faults))
    assert says(page, f"| kafka-python {sends_of(PYTHON)} nothing; {struck} faults took effect |")
    assert not any(line.judgement.broken for name in (ONE, PYTHON) for line in lines_of(name) if line.judgement)
    doubled, runs = counted_in(SHORT, "duplicate")
    lost, _ = counted_in(SHORT, "lost-write")
    words = f"{doubled} records doubled in {runs} runs; {lost} writes on no replica"
    assert says(page, f"| librdkafka {sends_of(SHORT)} {words} |")
    (wedged,) = wedged_clients(line.anomalies for line in lines_of(SHORT_PYTHON))
    words = f"nothing in the log; {wedged.producers} producers wedged in {wedged.runs} runs"
    assert says(page, f"| kafka-python {sends_of(SHORT_PYTHON)} {words} |")


def test_the_results_of_sixteen_settings_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    weak = [outcome for acks in (0, 1) for outcome in outcomes_of(OLDER, acks=acks)]
    unclean = outcomes_of(OLDER, acks="all", unclean_leader_election_enable=True)
    lost = {
        (name, world): sum(outcome == (world, Outcome.PERMITTED_LOSS) for outcome in cells)
        for name, cells in (("weak", weak), ("unclean", unclean))
        for world in ("kafka", "processes")
    }
    assert len(weak) == 64
    assert lost["weak", "processes"] == 32
    assert says(page, f"lost in {lost['weak', 'kafka']} of 32 cells on Kafka and in all 32 on the reference broker")
    assert says(page, f"lost in {lost['unclean', 'kafka']} of 16 cells on Kafka, in {lost['unclean', 'processes']} on")


def test_the_longer_runs_of_two_cells_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    for cell in kept_matrix("kafka-default-kill").cells:
        (kills,) = cell.exercised.values()
        unclean = str(cell.settings["unclean.leader.election.enable"]).lower()
        outcome = f"{cell.lost} lost as permitted" if cell.lost else "held, none lost"
        assert says(
            page, f"| {unclean} | {outcome} | {kills.took_effect} | {kills.exercised} | {cell.acknowledged:,} |"
        )
    shares = [100 * line.exercise.acknowledged / line.exercise.attempted for line in lines_of("kafka-default-kill")]
    assert says(page, f"{round(min(shares))} to {round(max(shares))} % of a run's sends were acknowledged")
    assert says(page, f"{counted_in('kafka-default-kill', 'wedged-client')[0]} times a producer was wedged")


def test_findings_quote_the_kept_runs() -> None:
    doubled, runs = counted_in(FIVE, "duplicate")
    third = words_of("docs", "findings", "003-librdkafka-doubled-records.md")
    assert says(third, f"[{doubled} findings]")
    assert says(third, f"in {runs} of {len(lines_of(FIVE))} runs")
    acknowledged = sum(line.exercise.acknowledged for line in lines_of(ONE))
    assert says(third, f"0 in {len(lines_of(ONE))} runs, {acknowledged:,} writes")
    acknowledged = sum(line.exercise.acknowledged for line in lines_of(SHORT))
    first = words_of("docs", "findings", "001-librdkafka-idempotence.md")
    assert says(first, f"{counted_in(SHORT, 'lost-write')[0]} of {acknowledged:,} acknowledged records")
    lost, runs = counted_in("missed-epoch", "lost-write")
    assert lost == runs == len(lines_of("missed-epoch")) == 10


def certificates() -> Iterator[tuple[list[str], Certificate]]:
    """Each certificate that is kept, with the command that made it."""
    for directory in sorted((KEPT / "certificates").iterdir()):
        record = read_campaign_record(directory)
        assert record is not None
        (certificate,) = certificates_in(directory)
        yield shlex.split(record.command), certificate


def test_the_guide_of_upgrades_shows_the_certificates_that_are_kept() -> None:
    guide = (ROOT / "docs" / "guides" / "upgrade.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(ackproof .*)\n  (.*)$", guide, re.MULTILINE)
    shown = {tuple(shlex.split(command)): result for command, result in lines}
    kept = {tuple(command): result_words(certificate) for command, certificate in certificates()}
    assert kept == shown


def result_words(certificate: Certificate) -> str:
    """A certificate in the line of the guide."""
    if not certificate.granted or certificate.lost:
        return certificate.sentence.partition(";")[0]
    parts = [
        f"{len(certificate.steps)} steps",
        *(f"{count} {kind}s" for kind, count in sorted(certificate.faults.items())),
    ]
    written = f"{certificate.acknowledged:,} of {certificate.attempted:,} writes acknowledged"
    return f"certified: {', '.join([*parts, written])}"


def test_the_night_that_is_kept_is_what_the_measurements_say() -> None:
    entries = [msgspec.json.decode(line) for line in lzma.decompress(LEDGER.read_bytes()).splitlines()]
    by_kind: dict[str, list[Any]] = {}
    for entry in entries:
        by_kind.setdefault(entry["entry"], []).append(entry)
    turns = len(by_kind["performed"])
    assert {entry["status"] for entry in by_kind["performed"]} == {"completed"}
    assert turns == len(lines_of("night"))
    cells = kept_matrix("night").cells
    held = sum(cell.outcome is Outcome.HELD for cell in cells)
    memory = [entry["memory"]["harness"] / 1e6 for entry in by_kind["sampled"]]
    disk = max(entry["disk_bytes"] for entry in by_kind["sampled"]) / 1e6
    seconds = msgspec.json.decode(LEDGER.with_name("night.json").read_bytes())["elapsed_s"]
    said = (
        f"{seconds:.0f} s, {turns:,} turns, each judged once, {held} of {len(cells)} cells held. The harness took "
        f"{min(memory):.0f} to {max(memory):.0f} MB, the directory {disk:.0f} MB at most."
    )
    assert says(words_of("results", "reference", "measurements.md"), said)


def test_the_results_of_the_usual_advice_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    clients = [kept_matrix(f"kafka-usual-advice-{name}").cells for name in ("java", "kafka-python", "librdkafka")]
    for cells in clients:
        assert {cell.family: str(cell.outcome) for cell in cells} == {
            **dict.fromkeys(("kill", "pause", "partition"), "held"),
            "power": "permitted loss",
        }
        assert [cell.runs_lost for cell in cells if cell.family == "power"] == [5]
    met, lost, refused, after = (
        tuple(sum(map(figure, cells)) for cells in clients)
        for figure in (
            lambda cell: 0 if cell.family == "power" else exercised_faults(cell),
            lambda cell: cell.lost,
            lambda cell: cell.coverage["refused_before_append"],
            lambda cell: cell.coverage["refused_after_append"],
        )
    )
    assert says(page, f"{met[0]} faults that met writes with Java, {met[1]} with kafka-python and {met[2]} with librd")
    assert says(page, f"{lost[0]:,} with Java, {lost[1]:,} with kafka-python, {lost[2]:,} with librdkafka")
    assert says(
        page, f"{refused[0]} attempts of Java, {refused[1]} of kafka-python and {refused[2]} of librdkafka before"
    )
    assert after[:2] == (0, 0)
    assert says(page, f"and {after[2]} of librdkafka after it")
    unanswered = sum(cell.attempted - cell.acknowledged for cells in clients for cell in cells)
    assert says(page, f"every write but {unanswered}")


def test_the_results_of_weaker_settings_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    rows = rows_of("kafka-weaker")
    assert not any(cell.broken for row in rows for cell in row.cells.values())
    none, leader, unclean = (
        (sum(cell.runs_lost for cell in row.cells.values()), sum(cell.lost for cell in row.cells.values()))
        for row in rows
    )
    runs, total = sum(cell.runs for cell in rows[0].cells.values()), len(lines_of("kafka-weaker"))
    assert says(page, f"{total} runs, each cell as expected, no promise broken")
    assert says(
        page, f"acks=0 lost in {none[0]} of {runs} runs, acks=1 in {leader[0]}: {none[1]:,} and {leader[1]:,} wr"
    )
    lost = {family: cell.runs_lost for family, cell in rows[2].cells.items()}
    assert (lost["partition"], lost["pause"]) == (0, 0)
    assert says(page, f"{lost['kill']} of 5 runs under kill lost writes, none under partition and pause")
    assert says(page, f"all {lost['power']} under power: {unclean[1]:,} writes")


def test_librdkafka_with_its_default_broke_no_promise_and_promises_less() -> None:
    page = words_of("results", "reference", "README.md")
    usual = "kafka-usual-advice-librdkafka"
    assert not any(line.judgement.broken for line in lines_of(usual) if line.judgement)
    assert says(page, f"none of {len(lines_of(usual))} runs broke a promise")
    (doubled, of_doubled), (moved, of_moved) = (counted_in(usual, name) for name in ("duplicate", "reordered"))
    assert says(page, f"{doubled} writes are in the log twice, in {of_doubled} runs, and {moved} changed places")
    assert says(page, f"{moved} changed places, in {of_moved} runs")


@pytest.mark.parametrize("campaign", [path.name for path in sorted((KEPT / "exactly-once").iterdir())])
def test_the_results_of_exactly_once_say_what_the_verdicts_say(campaign: str) -> None:
    lines = lines_of(f"exactly-once/{campaign}")
    counts = [line.transactions for line in lines]
    figures = (
        len(lines),
        sum(each.all for each in counts),
        sum(each.aborted_seen for each in counts),
        sum(line.groups.rebalanced_over_commits or 0 for line in lines),
        sum(fault.cleaned for line in lines for fault in line.fault_exercise or ()),
    )
    counted = {word: counted_in(f"exactly-once/{campaign}", name)[0] for name, word in WORD_OF_ANOMALY.items()}
    verdict = ", ".join(f"{number} {word}" for word, number in counted.items() if number) or "nothing"
    row = f"| `{campaign}` | {' | '.join(f'{figure:,}' if figure else '' for figure in figures)} | {verdict}"
    assert says(words_of("results", "reference", "README.md"), " ".join(row.split()))
    assert all(each.unread_levels == 0 for each in counts if each.all)
    outcome = Outcome.HELD if verdict == "nothing" else Outcome.BROKEN_PROMISE
    assert {cell.outcome for cell in kept_matrix(f"exactly-once/{campaign}").cells} == {outcome}


def test_the_results_of_storms_say_what_the_verdicts_say() -> None:
    page = words_of("results", "reference", "README.md")
    (cell,) = kept_matrix("kafka-storm").cells
    assert (cell.outcome, cell.exercised["storm"].exercised, cell.attempted) == (Outcome.HELD, 15, cell.acknowledged)
    receipts = (receipt for line in lines_of("kafka-storm") for receipt in latest_receipts(line.faults))
    struck = Counter(receipt.fault for receipt in receipts if receipt.took_effect)
    faults = f"{struck['kill']} kills, {struck['pause']} pauses, {struck['partition']} cuts and {struck['moveleader']}"
    assert says(page, f"Fifteen storms: {faults} moves of leadership took effect. All {cell.acknowledged:,} writes")


def test_kept_tables_have_the_words_and_legends_of_this_version() -> None:
    texts = dict(kept())
    assert len(texts) > 40
    assert [str(file) for file, text in texts.items() if file.read_text(encoding="utf-8") != text] == []
