#!/usr/bin/env bash
# A short campaign on real Apache Kafka where that can be had; where it cannot, one plain sentence says why, and that is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
ackproof=.venv/bin/ackproof
not_tested() { printf 'REAL KAFKA WAS NOT TESTED: %s\n' "$*"; exit 0; }

[ "$(id -u)" = 0 ] || not_tested "network namespaces and disks of the brokers' own need root"
"$ackproof" kafka install || not_tested "Apache Kafka could not be installed, for the reason above"
exec "$ackproof" campaign plans/kafka.toml
