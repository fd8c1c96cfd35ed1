# Everything that people and machines run here. `make` alone lists it.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS     := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; a machine with only Go tests without it and says so.
CC_FOUND = $(shell command -v gcc || command -v clang || command -v cc)
RACE     = $(if $(CC_FOUND),-race,)

# The tests in a browser are a module of their own, so that nobody else downloads what drives it.
BROWSER := cd internal/console/browsertest &&

.DEFAULT_GOAL := help
.PHONY: help run build test browser screenshots check bench torture cover clean needs fmt static tidy generated

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build, and start a sandbox to try things on
	bin/parley dev

build: ## Build bin/parley: one static file
	@command -v go >/dev/null || { echo "make: Go is not installed. Install Go 1.26 or later: https://go.dev/dl"; exit 1; }
	@[ -x bin/parley ] || echo "The first build downloads modules and compiles for a few minutes."
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/parley ./cmd/parley

test: needs ## Run every test
	go vet ./...
	$(if $(RACE),CGO_ENABLED=1 )go test $(RACE) -shuffle=on -timeout 15m ./...
	$(if $(RACE),go test -run TestKillLoopWhatsApp ./cmd/parley) # in full, which the race detector makes too slow
	$(MAKE) browser

browser: needs ## Run the tests of the console in a browser
	$(BROWSER) go vet ./...
	$(BROWSER) go test -shuffle=on ./...

screenshots: needs ## Take the pictures of the console in docs/img
	$(BROWSER) go test -count=1 -run '^TestEveryPage$$' -screenshots $(CURDIR)/docs/img .

check: fmt static tidy generated test ## Run every test and all that guards the tree

bench: build ## Measure what users meet, as ratios of one run
	go run ./internal/bench

torture: needs ## Kill the server again and again under load, for long
	PARLEY_KILLS=120 PARLEY_MESSAGES=30000 PARLEY_INBOUND=10000 PARLEY_OUTAGE=10s go test -count=1 -v -timeout 4h -run 'TestKillLoop|TestWhatsAppOutage' ./cmd/parley
	$(if $(RACE),PARLEY_KILLS=25 PARLEY_MESSAGES=5000 PARLEY_INBOUND=1000 CGO_ENABLED=1 go test -race -count=1 -v -timeout 1h -run 'TestKillLoopWhatsApp' ./cmd/parley)

cover: needs ## Show how much of the code the tests reach
	go test -coverprofile=cover.out -coverpkg=./... ./...
	go tool cover -func=cover.out | tail -n 1

clean: ## Remove what was built
	rm -rf bin cover.out

# What the tests need beside Go. On Debian as root it is installed; elsewhere it is named.
needs:
	@missing=""; \
	command -v ffmpeg >/dev/null || missing="$$missing ffmpeg"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$$missing chromium fonts-liberation"; \
	[ -n "$$(fc-list :lang=und-zsye 2>/dev/null)" ] || missing="$$missing fontconfig fonts-noto-color-emoji"; \
	[ -n "$(CC_FOUND)" ] || missing="$$missing gcc libc6-dev"; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && exit 0; \
	fi; \
	echo "make: missing:$$missing (ffmpeg converts audio, curl types the README, Chromium shows the console, a C compiler serves the race detector). Install them with your package manager."

fmt:
	@wrong=$$(gofmt -l .); [ -z "$$wrong" ] || { echo "not formatted, run gofmt -w on:"; echo "$$wrong"; exit 1; }

static:
	go run $(STATICCHECK) ./...
	$(BROWSER) go run $(STATICCHECK) ./...

tidy:
	go mod tidy -diff
	$(BROWSER) go mod tidy -diff

generated:
	@before=$$(git diff | git hash-object --stdin); go generate ./...; after=$$(git diff | git hash-object --stdin); \
	[ "$$before" = "$$after" ] || { echo "generated files are out of date: commit what go generate ./... made"; exit 1; }
