"""Writes `docs/reference/`: `make reference`."""

from __future__ import annotations

from harness.ground.known_defects import product_findings
from scripts.reference import DIRECTORY, PAGES, affected
from scripts.reference.conformance import FILE, compared, conformance, held_free_runs
from scripts.reference.losses import FILE as LOSSES
from scripts.reference.losses import losses
from scripts.reference.prices import FILE as PRICES
from scripts.reference.prices import prices

for name, make in PAGES.items():
    (DIRECTORY / name).write_text(make(), encoding="utf-8")
FILE.write_text(conformance(compared(), held_free_runs()), encoding="utf-8")
LOSSES.write_text(losses(), encoding="utf-8")
PRICES.write_bytes(prices())
for finding in product_findings().values():
    page = affected.PAGES / finding.page
    page.write_text(affected.with_affected(page.read_text(encoding="utf-8"), finding), encoding="utf-8")
affected.INDEX.write_text(
    affected.with_findings(affected.INDEX.read_text(encoding="utf-8"), product_findings().values()), encoding="utf-8"
)
