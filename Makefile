# All tasks of this repository. `make` alone lists them.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
RELEASE     := $(shell sed -n 's/^const release = "\(.*\)"/\1/p' cmd/parley/version.go)
VERSION     := $(if $(filter v$(RELEASE),$(shell git describe --tags --exact-match --dirty 2>/dev/null)),$(RELEASE),$(RELEASE)-dev)
TARGETS     := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

# The race detector needs a C compiler. Without one its tests are skipped, with a message.
CC_FOUND = $(shell command -v gcc || command -v clang || command -v cc)

# The tests in a browser are a module of their own: other builds do not download its dependencies.
BROWSER := internal/console/browsertest

# So is what generated clients import.
CLIENTS := internal/e2e/clients

# Runs go test and prints progress. No package comes near the time limit unless something hangs. Every check runs go vet once, whole.
RUNTESTS := go run ./internal/tools/runtests
LIMIT    := -timeout 40m -vet=off
# The slowest come first, so that they do not run alone at the end.
PACKAGES := ./cmd/parley ./internal/e2e/... ./internal/api ./internal/media ./internal/network/whatsapp ./...

ifeq ($(shell command -v go || true)$(filter help deps clean,$(or $(MAKECMDGOALS),help)),)
$(error Go is not installed. Install Go 1.26 or later: https://go.dev/dl)
endif

.DEFAULT_GOAL := help
.PHONY: whatsmeow-diff help run build test check extra race race-all kills fuzz postgres clients generators browser screenshots bench torture soak cover release vulns docs-site clean \
	deploy-check deps fmt static tidy generated beside

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build, and start a sandbox
	bin/parley dev

deps: ## List what the test suites need besides Go, and install it: as root on Debian, without starting services
	@internal/tools/deps.sh test clients postgres browser deploy

build: ## Build bin/parley, one static file
	@[ -x bin/parley ] || echo "The first build downloads modules and compiles for a few minutes."
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/parley ./cmd/parley

test: test-deps ## Run the tests of every package
	go vet ./...
	$(RUNTESTS) $(LIMIT) -shuffle=on -p 4 $(PACKAGES)

check: test extra ## Run everything that a change must pass

# Suites wait as much as they work, so two run at a time. Three on two cores gained little, and kept everything waiting.
extra: fmt tidy generated test-deps postgres-deps clients-deps browser-deps ## Run what check does beyond test
	$(MAKE) -j2 postgres beside
	$(MAKE) -j2 race browser

beside:
	$(MAKE) kills
	$(MAKE) clients
	$(MAKE) static
	$(MAKE) fuzz

# The detector makes everything about eight times slower. Tests without concurrency are skipped, also those that walk
# through tables one request after the other, and the loops are shorter.
# Random stanzas are skipped because whatsmeow itself closes a channel that it may be sending on (docs/whatsapp.md), and a dropped socket of
# the bare client because its wait for a connection writes under a lock for reading (exsync.Event.GetChan).
# SQLite, translated from C, is not instrumented: it has its own locks, and would take most of the time.
UNRACED := -gcflags='modernc.org/sqlite/lib=-race=false' -gcflags='modernc.org/libc/...=-race=false'
race race-all: export PARLEY_KILLS=2
race race-all: export PARLEY_MESSAGES=300
race race-all: export PARLEY_CLOUD_KILLS=2
race race-all: export PARLEY_CLOUD_MESSAGES=300
race race-all: export PARLEY_INBOUND=80
race race-all: export PARLEY_REQUESTS=250
# Without it every program that ends waits a second.
race race-all: export GORACE=atexit_sleep_ms=0
RACE := $(RUNTESTS) $(LIMIT) -shuffle=on -p 3 -race $(UNRACED)
CALM := TestHostileRequests|TestArchive$$|TestDroppedSocket$$|TestGlossary|TestEncodeWebP|Snippets|FuzzNodes|TestLargePhotos|TestCostIsNoLess|TestHostilePictures|TestDetailedSticker|TestPlainWords|TestConvertedSticker|TestVoice$$|TestRecorded|TestIcon$$|TestStickerThatIsNotTaken|TestStickerOfAnimatedGIF|TestOpenAPI
# These take long and do one thing after the other, mostly on a clock that the test moves: race-all runs them.
# Of the store's suite, race runs the groups in which several callers use it at once.
ALONE := plans|audit|requests|alerts|chats|chat_list|retention|answers|clock|strangers|webhooks|deliveries|search|search_by_number|traces|moves|files_to_fetch|uploads|stored_files|counters|remote|opt-outs|the_rest
LONG := TestSQLite/($(ALONE))$$|TestCareful|TestNewNumberKeepsItsAge|TestWrongHashes|TestFilesOfUnknownContacts|TestEveryOperation|TestFilesAndProcessesAreUntouchable|TestSandboxNeverStandsIn|TestFilesFailAfterADay|TestOldTextAndStoredResponsesArePurged|TestAClockThatIsAheadKeepsKeys|TestOrphansAreRemoved|TestOldDeliveriesArePurged|TestStatusCodes|TestDownForADay|TestInterruptedRotation|TestErrorCodesOfAllRoutes|TestEveryRouteAndRole|TestPaceAfterBan|TestOldEventsArePurged|TestCodesAreUniform
NO_CC := @echo "make: no C compiler: no tests under the race detector"
# Four packages send one request after the other to a whole server. Of these, race runs the tests in which several things happen
# at once, and race-all the others too: they take as long as all other packages together.
SERVER  := cmd/parley|internal/e2e/contract|internal/e2e/hostile|internal/e2e/product
SEVERAL := Stream|Waiting|AtOnce|UnderAttack|Validate|LeavesNothing|MCP|SandboxMessages|OneKey|UnderLoad|Generated|Slow|Webhook
race: test-deps ## Run the tests in which things happen at once under the race detector
	$(if $(CC_FOUND),$(RACE) -skip '$(CALM)|$(LONG)' ./internal/store ./internal/gateway ./internal/api ./internal/parleytest ./internal/media ./internal/network/whatsapp $$(go list ./... | grep -vE '/($(SERVER))$$'),$(NO_CC))
	$(if $(CC_FOUND),$(RACE) -run '$(SEVERAL)' -skip '$(CALM)' $$(go list ./... | grep -E '/($(SERVER))$$'))

race-all: test-deps ## Run the tests of every package under the race detector
	$(if $(CC_FOUND),$(RACE) -skip '$(CALM)' $(PACKAGES),$(NO_CC))

# How long each fuzz target runs.
FUZZ ?= 30s
kills: test-deps ## Run the tests that kill the server and the random ones, in full
	PARLEY_KILLS=25 PARLEY_MESSAGES=5000 PARLEY_CLOUD_KILLS=10 PARLEY_CLOUD_MESSAGES=1000 PARLEY_INBOUND=1000 PARLEY_OUTAGE=2s PARLEY_REQUESTS=2100 \
		$(RUNTESTS) $(LIMIT) -count=1 -run 'TestKillLoop|TestWhatsAppOutage|TestGeneratedRequests' ./internal/e2e/crash ./internal/e2e/hostile

# Only the package and what reads JSON for it are instrumented: go test -fuzz would compile all packages again, for minutes.
FUZZED := $(CURDIR)/bin/cloud.test
fuzz: ## Fuzz what strangers can send, for FUZZ each
	go test -c -vet=off -gcflags=parley/internal/network/cloud=-d=libfuzzer -gcflags=encoding/json=-d=libfuzzer -o $(FUZZED) ./internal/network/cloud
	cd internal/network/cloud && for target in FuzzParse FuzzVerify; do \
		$(FUZZED) -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZ) -test.fuzzcachedir $(CURDIR)/bin/fuzz -test.parallel 1 || { tail -n +1 testdata/fuzz/*/*; exit 1; }; done

# Those that use PostgreSQL, and three nodes that are killed, stopped and paused once: these wait more than they work.
postgres: export PARLEY_POSTGRES=1
postgres: test-deps postgres-deps ## Run the tests on PostgreSQL
	$(RUNTESTS) $(LIMIT) -count=1 -p 4 -parallel 4 -run 'Postgres|Member|Newer|Cluster|Node|Restart|Crashes|FailsOver' ./internal/e2e/cluster ./internal/e2e/contract ./internal/api ./internal/alert ./internal/requestlog \
		./internal/store/... ./internal/cluster ./internal/otp ./internal/network/sandbox ./internal/network/whatsapp/keystore ./internal/app ./cmd/parley

clients: test-deps clients-deps ## Test the client libraries and examples, and a generated Go client, with a server
	cd $(CLIENTS) && go vet ./...
	$(RUNTESTS) -C $(CLIENTS) $(LIMIT) ./...

# They download hundreds of packages.
generators: export PARLEY_GENERATORS=1
generators: clients-deps ## Generate clients with four generators, and use each with a server
	$(RUNTESTS) -C $(CLIENTS) $(LIMIT) -count=1 -run 'TestGoClient|TestGenerators' ./...

browser: test-deps browser-deps ## Run the tests of the console in a browser
	cd $(BROWSER) && go vet ./...
	$(RUNTESTS) -C $(BROWSER) $(LIMIT) -shuffle=on ./...

screenshots: test-deps browser-deps ## Regenerate the console screenshots in docs/img
	cd $(BROWSER) && go test -count=1 -run '^TestEveryPage$$' -screenshots $(CURDIR)/docs/img .

bench: build postgres-deps browser-deps ## Measure performance, as ratios of one run
	go run ./internal/bench
	cd $(BROWSER) && go test -count=1 -v -run '^TestTyping$$' -typing .

# NIGHT=1 does ten times as much.
N := $(if $(NIGHT),0,)
torture soak: export PARLEY_RUNS=$(CURDIR)/docs/runs.tsv
SUM_RUNS := go test -count=1 -run TestReliabilityPage ./internal/e2e/runs -update
torture: test-deps postgres-deps ## Kill the server and nodes repeatedly under load, for hours
	PARLEY_KILLS=120$(N) PARLEY_MESSAGES=30000$(N) PARLEY_CLOUD_KILLS=100$(N) PARLEY_CLOUD_MESSAGES=20000$(N) PARLEY_INBOUND=10000$(N) PARLEY_OUTAGE=10s go test -count=1 -v -timeout 40h -run 'TestKillLoop|TestWhatsAppOutage' ./internal/e2e/crash
	$(if $(CC_FOUND),PARLEY_RUNS= PARLEY_KILLS=25 PARLEY_MESSAGES=5000 PARLEY_INBOUND=1000 CGO_ENABLED=1 go test -race -count=1 -v -timeout 1h -run 'TestKillLoopWhatsApp' ./internal/e2e/crash)
	PARLEY_POSTGRES=1 PARLEY_NODE_KILLS=30$(N) PARLEY_NODE_RESTARTS=15$(N) PARLEY_NODE_PAUSES=20$(N) PARLEY_DATABASE_KILLS=5$(N) PARLEY_DATABASE_FAILOVERS=5$(N) PARLEY_NODE_CUTS=10$(N) PARLEY_NODE_PARTITIONS=6$(N) PARLEY_NODE_CLOCK=1 go test -count=1 -v -parallel 1 -timeout 20h ./internal/e2e/cluster
	$(SUM_RUNS)

# How long, and how many messages per second.
SOAK ?= 2h
RATE ?= 100
soak: test-deps ## Send at a steady rate with everything else going on, for SOAK
	PARLEY_SOAK=$(SOAK) PARLEY_RATE=$(RATE) go test -count=1 -v -timeout 40h -run '^TestSoak$$' ./internal/e2e/crash
	$(SUM_RUNS)

cover: test-deps ## Show the test coverage
	go test -coverprofile=cover.out -coverpkg=./... ./...
	go tool cover -func=cover.out | tail -n 1

# A module of its own too. As root, on Debian: it makes and runs images, and starts PostgreSQL as its own user.
DEPLOY := deploy/check
deploy-check: deploy-deps ## Try the images, manifests, units, proxy and alerts in deploy
	cd $(DEPLOY) && go mod tidy -diff && go vet ./... && go run $(STATICCHECK) ./...
	$(RUNTESTS) -C $(DEPLOY) $(LIMIT) -count=1 ./...

whatsmeow-diff: ## Print what changed in the functions of whatsmeow that we replace: OLD=v… NEW=v…
	@go run ./internal/tools/whatsmeowdiff $(or $(OLD),$(shell go list -m -f '{{.Version}}' go.mau.fi/whatsmeow)) $(NEW)

# What dist has afterwards is everything that a release page needs. The commit is part of the programs, so it must be known.
release: ## Build a release into dist: programs, images, an SBOM, checksums and release notes
	@[ -z "$$(git status --porcelain)" ] || { echo "make: the working tree has changes. Commit them first."; exit 1; }
	@grep -q '^## $(RELEASE) - ' CHANGELOG.md || { echo "make: CHANGELOG.md has no section for $(RELEASE)."; exit 1; }
	rm -rf dist && mkdir dist
	@set -e; for target in $(TARGETS); do \
		file=dist/parley-$(RELEASE)-$$(echo $$target | tr / -); echo $$file; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} \
			go build -buildvcs=true -trimpath -ldflags '-s -w -X main.version=$(RELEASE)' -o $$file ./cmd/parley; \
	done
	@set -e; for arch in $(patsubst linux/%,%,$(filter linux/%,$(TARGETS))); do \
		file=dist/parley-$(RELEASE)-image-$$arch.tar; echo $$file; \
		go run ./internal/tools/image -tag parley:$(RELEASE) -o $$file dist/parley-$(RELEASE)-linux-$$arch; \
	done
	go run ./internal/tools/sbom -version $(RELEASE) -o dist/parley-$(RELEASE).cdx.json dist/parley-$(RELEASE)-linux-amd64
	sed -n '/^## $(RELEASE) - /,/^## /{/^## /!p;}' CHANGELOG.md > dist/RELEASE_NOTES.md
	cd dist && sha256sum parley-* > SHA256SUMS
	@echo "Tag it with: git tag -a v$(RELEASE) -m 'Parley $(RELEASE)'"

vulns: ## Look for known vulnerabilities in what the programs contain; needs the Internet
	go run $(GOVULNCHECK) ./...

# The pages are copied as they are; the reference is the page that a server shows at /docs, without its forms. Needs Node.js.
SITE := internal/tools/docssite
docs-site: ## Build the documentation into dist/site, with search and the API reference
	rm -rf dist/site dist/site-src && mkdir -p dist/site-src/public/reference
	tar cf - $$(git ls-files README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs clients examples) | tar xf - -C dist/site-src
	cp $(SITE)/index.md dist/site-src
	cd internal/api/docs && cp icon.svg style.css vendor/swagger-ui-bundle.js vendor/swagger-ui.css $(CURDIR)/dist/site-src/public/reference
	cp internal/api/openapi.json dist/site-src/public/reference
	sed 's#"/docs"#"../docs/README.html"#; s#"/docs/#"#g; s#"/openapi#"openapi#g' internal/api/docs/index.html > dist/site-src/public/reference/index.html
	sed "s#'/openapi#'openapi#; s#validatorUrl: null,#validatorUrl: null, supportedSubmitMethods: [],#" internal/api/docs/init.js > dist/site-src/public/reference/init.js
	ln -s $(CURDIR)/$(SITE)/node_modules dist/site-src
	npm --prefix $(SITE) install --no-save --no-audit --no-fund
	npm --prefix $(SITE) exec -- vitepress build $(SITE)

clean: ## Remove what was built
	rm -rf bin dist cover.out $(SITE)/node_modules

# What one suite needs. A C compiler comes first: with one, Go compiles everything again, with cgo.
%-deps:
	@internal/tools/deps.sh $*

fmt:
	@wrong=$$(gofmt -l .); [ -z "$$wrong" ] || { echo "not formatted, run gofmt -w on:"; echo "$$wrong"; exit 1; }

static:
	go run $(STATICCHECK) ./...
	cd $(BROWSER) && go run $(STATICCHECK) ./...
	cd $(CLIENTS) && go run $(STATICCHECK) ./...

tidy:
	go mod tidy -diff
	cd $(BROWSER) && go mod tidy -diff
	cd $(CLIENTS) && go mod tidy -diff

generated:
	@before=$$(git diff | git hash-object --stdin); go generate ./...; after=$$(git diff | git hash-object --stdin); \
	[ "$$before" = "$$after" ] || { echo "generated files are out of date: commit what go generate ./... made"; exit 1; }
