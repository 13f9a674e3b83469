# slipway: every command that an engineer needs. `make test` is the one that CI runs.
.PHONY: test soak clients bench generate need

test: need     ## everything that must hold, about ten minutes on two cores
	./scripts/test.sh

soak: need     ## the long loops: kill points, random faults, random histories
	./scripts/soak.sh

clients: need  ## real agents (claude-code, codex, qwen-code, opencode, Continue) do a turn and a follow-up
	./scripts/clients.sh

bench:         ## speed and memory, as ratios against a baseline in the same run
	./scripts/need.sh bench
	./scripts/bench.sh

generate:      ## renew generated files (checksums, assembly)
	go generate ./...

need:          ## install what the tests need on a bare Debian or macOS machine
	./scripts/need.sh
