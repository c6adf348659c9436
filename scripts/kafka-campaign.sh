#!/usr/bin/env bash
# A short campaign on real Apache Kafka. Without root, without Maven, or where nobody answers Maven, one plain sentence
# says so, and that is no failure; everything else that goes wrong is one.
set -euo pipefail
cd "$(dirname "$0")/.."
ackproof=.venv/bin/ackproof
not_reachable=69
not_tested() { printf 'REAL KAFKA WAS NOT TESTED: %s\n' "$*"; exit 0; }

[ "$(id -u)" = 0 ] || not_tested "network namespaces and disks of the brokers' own need root"
code=0
"$ackproof" kafka install || code=$?
[ "$code" != "$not_reachable" ] || not_tested "Apache Kafka cannot be fetched from here, for the reason above"
[ "$code" = 0 ] || exit "$code"
exec "$ackproof" campaign plans/kafka.toml
