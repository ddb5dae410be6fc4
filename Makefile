# One command a newcomer needs: make test. The others are for those who work here.
SHELL := /bin/bash
GO ?= go

.PHONY: test
test:
	$(GO) vet ./...
	$(GO) test -race -shuffle=on -count=1 ./...
