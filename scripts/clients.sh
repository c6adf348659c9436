#!/bin/sh
# Builds the client programs of examples/clients whose toolchains are here; says which are not.
set -eu
cd "$(dirname "$0")/../examples/clients"

echo "aiokafka: a virtual environment"
(cd aiokafka && python3 -m venv .venv && .venv/bin/pip install --quiet --require-hashes -r requirements.lock)
for program in franz-go sarama; do
    if command -v go >/dev/null; then
        echo "$program: $(go version)"
        (cd "$program" && go build -o client .)
    else
        echo "$program: not built, because there is no go"
    fi
done
if command -v npm >/dev/null; then
    echo "kafkajs: node $(node --version)"
    (cd kafkajs && npm ci --silent)
else
    echo "kafkajs: not installed, because there is no npm"
fi
