# Everything a newcomer needs: `make campaign` asks the question, `make test` proves the tool.
.DEFAULT_GOAL := help
PLAN ?= plans/default.toml
SEED ?=
BIN := .venv/bin

# Where it is set, each of the hundreds of processes that tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-test campaign check test findings races canary soak-smoke kafka clients prices examples reference bench bench-check wheel image image-check lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## virtual environment, dependencies, Java
	@scripts/bootstrap.sh

setup-test: ## the same, and the programs that the tests drive
	@scripts/bootstrap.sh test

campaign: setup ## run the default campaign and write its report (at most 6 minutes on 2 cores)
	@$(BIN)/ackproof campaign $(PLAN) $(if $(SEED),--seed $(SEED))

check: setup ## format, lint, strict types, layer contract, fast tests (three to four minutes on 2 cores)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/lint-imports --no-cache
	@$(BIN)/pytest -q -n 2 -m "not system and not root"

test: setup-test ## tests of everything, with clients of real Kafka (9 minutes on 2 quiet cores with setup; five workers, because some tests wait)
	@# In a fresh clone: what workers need is compiled and made once, and not by each of them; without it they take longer.
	@[ -d tests/__pycache__ ] || { $(BIN)/pytest -q --collect-only & \
	 $(BIN)/python -m scripts.spark_archive & wait; } >/dev/null 2>&1
	@$(BIN)/pytest -q -n 5 -m "not kafka and not finding and not race"

findings: setup-test ## every finding and its controls on Kafka 4.3.1, as their pages say (three quarters of an hour; not part of .ci/run)
	@$(BIN)/pytest -q -m finding

races: setup-test ## races inside clients and Kafka that must be lost, so a slow machine may fail them (five minutes; not part of .ci/run)
	@$(BIN)/pytest -q -m race

canary: setup ## a campaign with a planted bug, which must end with a broken promise (1 minute)
	@scripts/canary.sh

soak-smoke: setup ## a soak of a minute that is killed and resumed (1 minute)
	@scripts/soak-smoke.sh

kafka: setup-test ## runs, scripts and a short campaign on nodes of Apache Kafka, where Maven and root can be had (8 minutes)
	@$(BIN)/pytest -q -n 4 -m "kafka and not race"
	@scripts/kafka-campaign.sh

clients: ## the client programs of examples/clients whose toolchains are here
	@scripts/clients.sh

prices: setup-test ## what idempotence and requests in flight cost on Apache Kafka, as a table; on an idle machine (five minutes)
	@# Without a fault nothing is put to the test: exit code 2.
	@$(BIN)/ackproof campaign plans/kafka-idempotence-prices.toml --out results/reference/kafka-idempotence-prices \
		|| test $$? -eq 2
	@$(BIN)/python -m scripts.latency_table results/reference/kafka-idempotence-prices

examples: setup-test ## docs/examples/: pages to look at, and their pictures (a minute)
	@$(BIN)/python -m scripts.examples

reference: setup ## docs/reference/, generated from the code
	@$(BIN)/python -m scripts.reference

bench: setup ## speed of the simulator, of the cluster, and of the harness itself
	@$(BIN)/python -m bench

bench-check: setup ## speed and memory of the checking: 10^5 to 10^8 operations, JSON lines, transactions, groups, pipelines
	@$(BIN)/python -m bench check

wheel: setup-test ## a wheel in dist/
	@$(BIN)/python -m build --wheel --no-isolation

image: wheel ## a container image of ackproof, from ci/Containerfile and the wheel (needs a runner of containers)
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && ackproof=$(CURDIR)/$(BIN)/ackproof && wheel=$$(ls -t $(CURDIR)/dist/*.whl | head -1) \
	 && cd "$$work" && "$$ackproof" init ci >/dev/null && cp "$$wheel" ackproof/ \
	 && docker build --tag ackproof --file ackproof/Containerfile .

image-check: wheel ## the steps of ci/Containerfile in a bare Debian, and what the image does by itself (as root, with debootstrap)
	@$(BIN)/python -m scripts.image_check

lock: ## lock files from pyproject.toml, with hashes; `make check` sees to it that they fit
	@scripts/lock.sh

clean: ## remove what was built and installed here, but no results
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
