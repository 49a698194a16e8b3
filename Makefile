# make chat         the assistant in this terminal;  make chat ASK="…" answers once
# make test         all tests, the fast ones first
# make eval         the evaluation tasks with the local model (long);  make eval EVAL="--encoding chat --task last-commit"
# make bench        what is measured;  make bench PEERS=FOLDER  with a peers' benchmark beside it;  STORE=redis://… for that Redis
# make soak         20,000 rounds with random kills (some minutes);  make soak SOAK="2000 reduced" for less
# make fuzz         each fuzz target for FUZZ_SECONDS (60);  make fuzz FUZZ=done FUZZ_SECONDS=600
# make setup        only what the others would install
# make install      the release build into ~/.cargo/bin

# The question reaches the program as it is: through the environment, never through a shell's quotes.
override ASK := $(value ASK)
export ASK
EVAL ?=
PEERS ?=
STORE ?=
ROUNDS ?= 10000
PEERS_ARGUMENTS ?=
FIMBLE := target/debug/fimble
SLOW := binary(cli) & test(a_new_crate_is_built) | binary(llm_local) | binary(real_model) | binary(numpy) | binary(durability) | binary(interpreter) & test(/^(attacks::(what_the_kernel|bytes_from)|conformance|soak|users::attacks)/)
SOAK ?=

# Without a sanitizer, so that the stable toolchain does. With AddressSanitizer it needs a nightly one, and its RUSTUP_TOOLCHAIN:
#   RUSTUP_TOOLCHAIN=nightly make fuzz SANITIZER=address
FUZZ ?= wire message done round program files
FUZZ_SECONDS ?= 60
SANITIZER ?= none

.PHONY: setup build chat test fast slow eval bench bench-redis soak fuzz install

setup:
	@scripts/setup

build: setup
	@echo "building fimble"
	@cargo build

chat: build
ifeq ($(strip $(ASK)),)
	@$(FIMBLE) chat
else
	@$(FIMBLE) chat --ask="$$ASK"
endif

test: fast slow

fast: setup
	@scripts/setup tests
	@echo "format";  cargo fmt --all --check
	@echo "clippy";  cargo clippy --workspace --all-targets --features crash --quiet -- -D warnings
	@echo "python";  /usr/bin/python3 -m unittest discover --quiet -s tests/python
	@echo "rust: fast tests"
	cargo nextest run --workspace --features crash --no-fail-fast -E 'not ($(SLOW))'

slow: fast
	@echo "rust: slow tests, some with the real model server"
	@$(FIMBLE) model pull
	cargo nextest run --workspace --features crash --no-fail-fast -E '$(SLOW)'

eval: build
	@$(FIMBLE) eval $(EVAL)

bench: setup
	cargo run --release --example round
	cargo run --release --example gate
	cargo run --release --example check_speed
	cargo run --release --example store_speed -- "" $(ROUNDS)
ifeq ($(strip $(STORE)),)
	@scripts/setup tests
	scripts/with_redis $(MAKE) bench-redis
else
	$(MAKE) bench-redis
endif
ifneq ($(strip $(PEERS)),)
	cargo build --release --example peer
	FIMBLE_PEER="$(CURDIR)/target/release/examples/peer" python3 benches/peers.py "$(PEERS)" $(PEERS_ARGUMENTS)
endif

bench-redis:
	cargo run --release --example store_speed -- "$(STORE)" $(ROUNDS)
	cargo run --release --example replicas -- "$(STORE)"

soak: setup
	cargo run --release --example soak $(SOAK)

# What is found stays in fuzz/target; fuzz/corpus has the beginnings, which `make test` plays too.
fuzz: setup
	@scripts/setup fuzz
	@for target in $(FUZZ); do \
	  echo "fuzzing $$target for $(FUZZ_SECONDS) s"; mkdir -p fuzz/target/found/$$target; \
	  (cd fuzz && cargo fuzz run -s $(SANITIZER) $$target target/found/$$target corpus/$$target -- \
	    $$(test ! -f $$target.dict || echo -dict=$$target.dict) \
	    -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -timeout=20 -rss_limit_mb=4096 -max_len=65536) || exit 1; \
	done

install: setup
	cargo install --locked --path .
