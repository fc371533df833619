# The commands of the project. Each works from a fresh clone with Go and make.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all build run exact test compat soak race vet lint check demo bench fuzz

all: build

build: ## builds bin/wlmsim and bin/demo
	$(GO) build -o bin/ ./cmd/...

exact: ## builds bin/wlmsim-exact: same seed, same trace, to the bit
	overlay=$$($(GO) run ./cmd/wlmsim overlay bin/_overlay) && \
	$(GO) build -overlay "$$overlay" -tags exact -o bin/wlmsim-exact ./cmd/wlmsim

run: build ## runs every scenario and prints a line each and a summary
	bin/wlmsim run scenarios

test: ## runs all tests, with reduced counts, in under five minutes
	$(GO) test ./...

compat: ## runs real clients, the OpenAPI document and the README's curl lines; a module of its own, with its own downloads
	cd sim/compat/js && npm ci
	cd sim/compat && $(GO) vet ./... && $(GO) test ./...

soak: ## runs all tests with the full counts
	WLMSIM_SOAK=1 $(GO) test -timeout 120m ./...

race: ## runs all tests under the race detector
	$(GO) test -race ./...

vet:
	$(GO) vet ./...
	unformatted=$$(gofmt -l $$(git ls-files '*.go')) && { test -z "$$unformatted" || { echo "$$unformatted" >&2; exit 1; }; }

lint:
	$(GO) run $(STATICCHECK) ./...

check: vet lint test race demo ## what has to pass before a change lands

demo: build ## three live nodes throttle 30 searches; exit 0 only if exactly 15 are refused
	bin/demo bin/wlmsim

bench: ## prints the figures of docs/performance.md
	$(GO) test -p 1 -run '^$$' -bench . -benchmem -cpu 1,2 ./wlm
	$(GO) test -p 1 -run '^$$' -bench . -benchmem -timeout 60m $$($(GO) list ./... | grep -v /wlm$$)

FUZZTIME ?= 10m

fuzz: ## runs every fuzz target for FUZZTIME, one after the other
	grep -rl '^func Fuzz' --include='*_test.go' --exclude-dir=bin . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$$dir"/*_test.go); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
		done; \
	done
