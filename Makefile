# make chat         the assistant in this terminal;  make chat ASK="…" answers once
# make test         all tests, the fast ones first
# make eval         the evaluation tasks with the local model (long);  make eval EVAL="--encoding chat --task last-commit"
# make bench        what is measured
# make soak         20,000 rounds with random kills (a quarter of an hour);  make soak SOAK="2000 reduced" for less
# make setup        only what the others would install
# make install      the release build into ~/.cargo/bin

# The question reaches the program as it is: through the environment, never through a shell's quotes.
override ASK := $(value ASK)
export ASK
EVAL ?=
FIMBLE := target/debug/fimble
SLOW := binary(llm_local) | binary(real_model) | binary(interpreter) & test(/^(attacks::(what_the_kernel|bytes_from)|conformance|soak|users::attacks)/)
SOAK ?=

.PHONY: setup build chat test fast slow eval bench soak install

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
	@echo "clippy";  cargo clippy --workspace --all-targets --quiet -- -D warnings
	@echo "python";  /usr/bin/python3 -m unittest discover --quiet -s tests/python
	@echo "rust: fast tests"
	cargo nextest run --workspace --no-fail-fast -E 'not ($(SLOW))'

slow: fast
	@echo "rust: slow tests, some with the real model server"
	@$(FIMBLE) model pull
	cargo nextest run --workspace --no-fail-fast -E '$(SLOW)'

eval: build
	@$(FIMBLE) eval $(EVAL)

bench: setup
	cargo run --release --example round
	cargo run --release --example store_speed

soak: setup
	cargo run --release --example soak $(SOAK)

install: setup
	cargo install --locked --path .
