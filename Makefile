# One command a newcomer needs: make test. The others are for those who work
# here; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := test

GO ?= go
# How long the tests of one package may take before they count as hanging.
TIMEOUT ?= 60m
# How long each fuzz target runs, and which benchmarks of which packages.
FUZZTIME ?= 60s
BENCH ?= .
PKG ?= ./...
# What soak chooses its faults by, and how long it goes on.
SEED ?= 1
LENGTH ?= 10m

# Packages whose tests take longest start first, so that none runs alone at the end.
LONGEST := ./engine/claudecode ./cmd/tenon ./mcphost ./engine/enginetest
# With it a test fails where it would be skipped because a peer is missing.
REQUIRE := TENON_PEERS=require
# Not git ls-files: the sources may be an archive without a repository.
GOFILES = $(shell find . \( -name node_modules -o -name testdata -o -name .git \) -prune -o -name '*.go' -print)

.PHONY: test
test: peers suite format vet tidy generate unit ## everything that must be green: formatting, vet, go.mod, all tests with the race detector

.PHONY: unit
unit: peers suite
	$(REQUIRE) $(GO) test -race -shuffle=on -count=1 -timeout $(TIMEOUT) $(LONGEST) ./...

.PHONY: format
format: bin/gofumpt
	@bad=$$(bin/gofumpt -l $(GOFILES)); if [ -n "$$bad" ]; then echo "not formatted, run make fix:"; echo "$$bad"; exit 1; fi

.PHONY: fix
fix: bin/gofumpt ## format all Go files
	bin/gofumpt -w $(GOFILES)

# The race detector's builds of the dependencies are those of the tests. For the
# other systems nothing is run: dependencies are built without optimization.
.PHONY: vet
vet:
	$(GO) vet -race ./...
	GOOS=windows $(GO) vet -gcflags='all=-N -l' ./...
	GOOS=darwin $(GO) vet -gcflags='all=-N -l' ./...

.PHONY: tidy
tidy:
	$(GO) mod tidy -diff

.PHONY: generate
generate:
	@if grep -q '^//go:generate ' $(GOFILES); then echo "$(GO) generate ./..."; $(GO) generate ./...; git diff --exit-code; fi

.PHONY: peers
peers: ## install the npm packages that tests talk to, unless they are up to date
	@internal/peers/install

.PHONY: suite
suite: ## fetch the JSON-Schema-Test-Suite into the module cache
	@cd internal/schemasuite/suite && $(GO) mod download cuelang.org/go

.PHONY: lint
lint: bin/golangci-lint ## golangci-lint; the first run builds it, which takes minutes
	GOFLAGS="$$($(GO) env GOFLAGS) -race" bin/golangci-lint run ./...

# The tools are pinned in a module of their own, so that they are in no user's
# module graph. They are built anew when that changes.
bin/gofumpt: internal/tools/go.mod
	@cd internal/tools && $(GO) build -o ../../bin/gofumpt mvdan.cc/gofumpt && touch ../../bin/gofumpt

bin/golangci-lint: internal/tools/go.mod
	@cd internal/tools && $(GO) build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch ../../bin/golangci-lint

bin/gremlins: internal/tools/go.mod
	@cd internal/tools && $(GO) build -o ../../bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins && touch ../../bin/gremlins

.PHONY: conformance
conformance: peers suite ## the MCP conformance suite and the JSON Schema suite, with their counts
	$(REQUIRE) $(GO) test -count=1 -v -timeout $(TIMEOUT) -run '^TestSchemaguard$$' ./internal/schemasuite
	$(REQUIRE) $(GO) test -count=1 -v -timeout $(TIMEOUT) ./internal/conformance/...

.PHONY: requirements
requirements: ## which rows of docs/requirements.md no test names yet, and other figures
	@$(GO) test -count=1 -v -run '^TestReport$$' ./internal/requirements ./internal/layout | grep -v -E '^(=== RUN|---|PASS|ok)'

.PHONY: bench
bench: peers ## benchmarks and the table of ours and theirs; PKG=./internal/benchmarks BENCH=Agent narrows them down
	$(REQUIRE) $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@grep -H -o -E '^func Fuzz\w+' $(filter %_test.go,$(GOFILES)) | sed -e 's|/[^/]*:func | |' | sort -u | while read -r pkg target; do \
		echo "== $$pkg $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
	done

.PHONY: mutate
mutate: bin/gremlins ## small changes to a package that its tests should notice: PKG=./mcpauth
	bin/gremlins unleash --invert-logical --invert-loopctrl --remove-self-assignments --timeout-coefficient 10 $(PKG:%/...=%)

.PHONY: soak
soak: ## two hundred users and random faults for LENGTH, ten minutes, and a table of what went wrong: SEED=7 LENGTH=1h
	$(GO) test -count=1 -v -timeout 60m -run '^TestSoak$$' ./internal/soak -length $(LENGTH) -seed $(SEED)

.PHONY: clean
clean: ## remove what make has built and installed here
	rm -rf bin .cache internal/peers/node_modules internal/peers/.install.lock

.PHONY: help
help: ## this list
	@sed -n -e 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
