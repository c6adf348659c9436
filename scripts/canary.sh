#!/usr/bin/env bash
# The alarm must ring: a campaign on a reference broker with a planted bug ends with a broken promise in every cell, exit code 1.
set -euo pipefail
cd "$(dirname "$0")/.."
rings=1
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
code=0
.venv/bin/ackproof campaign plans/canary.toml --json > "$summary" || code=$?
[ "$code" = "$rings" ] || { printf 'THE ALARM DID NOT RING: exit code %s instead of %s\n' "$code" "$rings"; exit 1; }
.venv/bin/python scripts/expect.py "$summary" broken

# And in the search: a planted bug is found, and the broker as it is has nothing to find (30 s).
.venv/bin/ackproof hunt acknowledge-after-append commit-with-two --seconds 30
.venv/bin/ackproof hunt --clean 150
