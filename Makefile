# Every target makes what it needs first. `make` alone lists them.

PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format worker-image bench demo-coding-agent soak \
	deploy-local undeploy-local costs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv and install the project with its development tools; does nothing when up to date
	@scripts/setup

demo: setup ## watch a coding agent repair a program on this machine, its worker replaced in the middle
	@scripts/demo

test: setup ## run all tests; FOLDERS="unit contract" runs only those of tests/
	@scripts/with-docker $(PYTHON) scripts/test $(FOLDERS)

lint: setup ## ruff, mypy, shellcheck and the direction of imports
	@scripts/lint

format: setup ## let ruff format and sort imports
	@scripts/lint --fix

worker-image: setup ## build mango-self-hosted-worker:local, also where no registry can be reached
	@scripts/with-docker $(PYTHON) infra/docker/build-worker-image

bench: setup ## measure round trips, creates, streams and cold starts, next to their floors
	@$(PYTHON) -m benchmarks
	@$(PYTHON) -m benchmarks.cold_start

demo-coding-agent: setup ## the demo's application against a running deployment and a real model
	@scripts/with-docker scripts/demo-coding-agent

soak: setup ## many more seeds and kills than make test: SEEDS=20000 KILLS=100
	@SEEDS=$${SEEDS:-20000} $(PYTHON) -m pytest -q -n 2 tests/sim/test_interleavings.py --timeout=7200
	@KILLS=$${KILLS:-100} $(PYTHON) -m pytest -q -s tests/scenario/test_kill_server.py --timeout=7200

deploy-local: setup ## put the whole product on AWS_ENDPOINT_URL or LOCALSTACK_HOST, else on a MiniStack that is started
	@.venv/bin/mango deploy --to local

undeploy-local: setup ## remove what deploy-local made, with its data
	@.venv/bin/mango undeploy

costs: setup ## count what a tool round trip does on AWS, and what that costs
	@$(PYTHON) -m benchmarks.costs

clean: ## remove .venv, caches and build results; data of `mango up` (.mango) stays
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .aws-sam build dist infra/docker/wheels
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
