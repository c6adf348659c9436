#!/usr/bin/env bash
# A night in one minute: a soak is killed with SIGKILL and resumed; it must count every run once and leave nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/ackproof soak plans/smoke.toml --for 45s --disk 500MB --out "$work/soak" &
soak=$!
for _ in $(seq 1 900); do
    ! grep -qs '"entry":"judged"' "$work/soak/ledger.jsonl" || break
    sleep 0.1
done
kill -KILL "$soak"
wait "$soak" || true
code=0
.venv/bin/ackproof soak --resume "$work/soak" --json > "$work/summary" || code=$?
# 2: a minute is too short to put every cell to the test.
[ "$code" = 0 ] || [ "$code" = 2 ] || { printf 'THE SOAK ENDED WITH EXIT CODE %s\n' "$code"; cat "$work/summary"; exit 1; }
.venv/bin/ackproof heal "$work/soak"
.venv/bin/python scripts/expect.py "$work/summary" once
