#!/usr/bin/env bash
# A short campaign on real Apache Kafka, which must tell its settings apart: acks=1 loses, acks=all holds what it promised. Without
# root, without Maven, or where Maven gets no answer, one plain sentence says so. That is no failure unless ACKPROOF_NEEDS_KAFKA is
# set, as it is in .ci/run. Everything else that goes wrong is one.
set -euo pipefail
cd "$(dirname "$0")/.."
ackproof=.venv/bin/ackproof
not_reachable=69
not_tested() { printf 'REAL KAFKA WAS NOT TESTED: %s\n' "$*"; [ -z "${ACKPROOF_NEEDS_KAFKA:-}" ] || exit 1; exit 0; }

[ "$(id -u)" = 0 ] || not_tested "network namespaces and disks of the brokers' own need root"
code=0
"$ackproof" kafka install || code=$?
[ "$code" != "$not_reachable" ] || not_tested "Apache Kafka cannot be fetched from here, for the reason above"
[ "$code" = 0 ] || exit "$code"
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
"$ackproof" campaign plans/kafka.toml --json > "$summary" || code=$?
[ "$code" -le 2 ] || exit "$code"
.venv/bin/python scripts/expect.py "$summary" told-apart
exit "$code"
