# One line each: what the README says, from a fresh clone, with Python >= 3.10 and a Rust toolchain.
PYTHON ?= python3
BIN := .venv/bin
# AddressSanitizer with the toolchain that is there; its runtime comes with it.
ASAN := RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan
# A toolchain of Debian's for AArch64, and its programs under emulation; debugging tables would take half of the build.
ARM := RUSTC=/usr/bin/rustc CARGO_TARGET_DIR=target/arm CARGO_PROFILE_TEST_DEBUG=0 CARGO_INCREMENTAL=0 \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# pip, or uv where it is found, which takes seconds.
INSTALL := $(if $(shell command -v uv 2>/dev/null),VIRTUAL_ENV=$(CURDIR)/.venv uv pip install,$(BIN)/pip install) --quiet
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# A file's tests stay in one process, which keeps its fixtures and what it has computed; the longest files go first.
PYTEST := $(BIN)/pytest --numprocesses $(CORES) --dist loadfile
KEEP := $(PYTHON) benches/keep.py
FUZZ_MINUTES ?= 5
SOURCES := Cargo.toml Cargo.lock pyproject.toml python/papers/pyproject.toml $(shell find rust -name '*.rs' -o -name Cargo.toml)

.PHONY: demo test quick lint lint-rust lint-python rust-test python-test papers-test test-isa evidence bench bench-peers bench-design bench-tables bench-kernels bench-cohorts bench-updates bench-adapter supply release-check timing soak race asan asan-binding client-c test-client bench-client wasm test-wasm test-arm wheel-arm bench-arm fuzz figures papers paper-check numbers docs site-check wheel example test-engines test-prio clean

demo: .venv/demo ## release a table of real people, ask it, print truth and answers, save the plot
	$(BIN)/bitldp demo --out demo-output/demo.png

test: ## everything that must pass: the checks of both languages side by side, on all cores
	+$(MAKE) --jobs $(CORES) lint rust-test python-test

quick: $(if $(wildcard .venv/dev),,.venv/dev) ## what an edit may have broken, in about a minute: SINCE=main for a branch; `make test` has the last word
	$(BIN)/python tests/quick.py $(SINCE)

lint: lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

lint-python: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then set -x; $(BIN)/mypy; \
		else echo "mypy: left out, Flower's types need Python 3.11"; fi
	$(BIN)/python -m mypy.stubtest bitldp._core

rust-test:
	cargo test --workspace --locked

python-test: .venv/dev
	$(PYTEST)

papers-test: .venv/dev ## the tests of bitldp-papers alone
	$(PYTEST) tests/papers

# The numeric tests as on other machines: with scalar kernels and with AVX2, and with NumPy, its linear algebra and jax
# held to what a processor without AVX-512 has.
test-isa: .venv/dev ## the numeric tests as on machines without AVX-512, and without vector kernels
	newer="$$($(BIN)/python -c "from numpy._core import _multiarray_umath as of; \
		print(*(name for name in of.__cpu_dispatch__ if name[:6] in ('AVX512', 'X86_V4') and of.__cpu_features__[name]))")"; \
	for isa in scalar avx2; do \
		BITLDP_ISA=$$isa NPY_DISABLE_CPU_FEATURES="$$newer" OPENBLAS_CORETYPE=Haswell XLA_FLAGS=--xla_cpu_max_isa=AVX2 \
			$(PYTEST) -q tests/law tests/families tests/tasks/federated tests/papers/test_clients.py || exit 1; \
	done

evidence: .venv/dev ## what takes more draws and seeds than a test may; the figures are kept in benches/records/evidence.json
	$(PYTEST) -m evidence --keep-evidence

test-engines: .venv/dev ## one plan on Spark (Java 17), Ray, Dask, polars and DuckDB, in an environment of their own
	$(BIN)/maturin build --quiet --release --locked --out target/engines-wheel
	test -d target/engines || $(PYTHON) -m venv target/engines
	target/engines/bin/pip install --quiet pytest scipy 'bitldp[cli,engines] @ file://'$$(ls -t $(CURDIR)/target/engines-wheel/*.whl | head -1)
	target/engines/bin/pip install --quiet --force-reinstall --no-deps $$(ls -t target/engines-wheel/*.whl | head -1)
	target/engines/bin/python -m pytest -q -W ignore tests/engines

# Its extension module links what bitldp's does not, so it is a workspace and a wheel of its own.
test-prio: .venv/dev ## sums over two servers: bitldp-prio built, checked and tried, two processes of it included
	cd python/prio && cargo fmt --check && cargo clippy --locked --target-dir $(CURDIR)/target/prio -- -D warnings
	CARGO_TARGET_DIR=$(CURDIR)/target/prio MATURIN_PEP517_ARGS=--locked $(INSTALL) --no-build-isolation --no-deps ./python/prio
	$(BIN)/pytest -q tests/prio

bench: .venv/dev ## against NumPy in the same process, with the machine's own limits
	$(BIN)/python benches/throughput.py --every-isa

bench-peers: .venv/bench ## the same, with other libraries beside it; the figures are kept
	$(BIN)/python benches/throughput.py --every-isa --peers --record

bench-design: .venv/dev ## how long the designs of least variance take, and how good they are
	$(BIN)/python benches/design.py

bench-cohorts: .venv/dev ## rounds of 10^5 and 10^6 simulated clients, memory flat
	$(BIN)/python benches/cohorts.py
	$(BIN)/python benches/cohorts.py --wide --record

bench-updates: .venv/dev ## updates of 10^6 to 10^7 numbers: client, wire and server, against a copy of the update
	$(BIN)/python benches/updates.py --record

bench-adapter: .venv/dev ## accuracy of an adapter on a public layer, needs BITLDP_DATA
	$(BIN)/python benches/adapter.py --record

# The first two need no network; advisories need a database that is fetched.
supply: .venv/dev ## notices, licences and sources of what is linked; and advisories, where their databases can be reached
	$(PYTHON) tests/wheel/notices.py --check
	$(BIN)/pytest -q tests/house/test_supply.py
	@$(PYTHON) tests/wheel/advisories.py

timing: .venv/dev ## whether time tells a subnormal from zero, beside pairs that cannot differ
	$(BIN)/python benches/timing.py --record

soak: .venv/dev ## 10^9 samples of every kernel against its exact law, memory flat; about an hour
	$(BIN)/python benches/soak.py --record

race: .venv/dev ## other threads rewrite the input meanwhile: no report outside the alphabet
	$(KEEP) race -- $(BIN)/pytest -q tests/law/channels/test_race.py

asan: ## the tests of the Rust core under AddressSanitizer: nothing is read or written beside its memory
	$(ASAN) $(KEEP) asan -- cargo test -p bitldp-core --locked --target $(HOST)

# The extension module needs a runtime that is shared, which comes with the C compiler: Python itself has none.
asan-binding: .venv/dev ## every entry point of the binding under AddressSanitizer, for FUZZ_MINUTES; the figures are kept
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Zexternal-clangrt" CARGO_TARGET_DIR=target/asan \
		cargo build -p bitldp-python --profile demo --locked --features pyo3/abi3-py310 --target $(HOST)
	rm -rf target/asan/package && mkdir -p target/asan/package && cp -r python/bitldp target/asan/package
	cp target/asan/$(HOST)/demo/lib_core.so target/asan/package/bitldp/_core.abi3.so
	$(KEEP) asan-binding -- env BITLDP_FUZZ_SECONDS=$$(($(FUZZ_MINUTES) * 60)) PYTHONPATH=target/asan/package PYTHONMALLOC=malloc \
		LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
		$(BIN)/pytest -q -s tests/fuzz/test_binding.py tests/law/channels/test_extension.py tests/law/channels/test_race.py

wasm: ## the module of a page, with SIMD, beside its JavaScript in the package; on Debian it installs what that takes, as root
	tests/wasm/setup
	cd rust/client && CARGO_TARGET_DIR=$(CURDIR)/target/wasm-simd128 ../../tests/wasm/cargo simd128 --profile client
	cp target/wasm-simd128/wasm32-unknown-unknown/client/bitldp_client.wasm python/bitldp/client/web/bitldp.wasm

test-wasm: .venv/dev ## streams in Node are native ones; reports in Node and in Chromium are Python's; TIME=--time measures, too
	tests/wasm/setup
	@tests/wasm/setup chromium-driver || echo "Chromium is left out: its tests are skipped"
	for kind in simd128 scalar; do \
		(cd tests/wasm && CARGO_TARGET_DIR=$(CURDIR)/target/wasm-$$kind ./cargo $$kind --release) || exit 1; \
		node tests/wasm/check.mjs target/wasm-$$kind/wasm32-unknown-unknown/release/bitldp_wasm_tests.wasm $$kind $(TIME) || exit 1; \
	done
	cd rust/client && CARGO_TARGET_DIR=$(CURDIR)/target/wasm-golden ../../tests/wasm/cargo simd128 --profile client --features golden
	$(PYTEST) tests/client/test_node.py tests/client/test_chromium.py tests/client/test_survey.py tests/client/test_live.py \
		tests/client/test_sizes.py

client-c: ## the C library of clients: its tests, ten thousand changed documents, its example under valgrind, Python's bytes
	tests/client/c

test-client: .venv/dev client-c ## the same where Python is set up: the library's reports of a thousand records are Python's

bench-client: module ## clients in C and in Node: a document opened, a record, a value of many, the libraries' sizes; the figures are kept
	tests/client/cargo cdylib
	$(PYTHON) benches/client.py --record

test-arm: ## the tests of the Rust core on AArch64, emulated; on Debian it installs what that takes, as root
	tests/arm/setup
	BITLDP_TEST_SHARE=10 $(ARM) cargo test -p bitldp-core --locked --target aarch64-unknown-linux-gnu --lib --tests

wheel-arm: ## a manylinux2014 wheel for AArch64 in target/arm/wheels; an emulated Python runs the README and the golden streams
	tests/arm/wheel

bench-arm: ## instructions of a value on AArch64, counted under emulation, and cycles as llvm-mca estimates them; they are kept
	tests/arm/setup qemu-user llvm-22
	mkdir -p target/arm && cc -shared -fPIC -O2 -o target/arm/count.so benches/count_instructions.c
	$(ARM) CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(PYTHON) $(CURDIR)/benches/instructions.py" \
		cargo bench -p bitldp-core --locked --target aarch64-unknown-linux-gnu --bench instructions

fuzz: .venv/dev ## FUZZ_MINUTES of calls drawn at random: the core under AddressSanitizer, then Python's side
	BITLDP_FUZZ_SECONDS=$$(($(FUZZ_MINUTES) * 30)) $(ASAN) $(KEEP) fuzz-core -- cargo test -p bitldp-core --locked \
		--target $(HOST) --test fuzz -- --nocapture --test-threads 15
	BITLDP_FUZZ_SECONDS=$$(($(FUZZ_MINUTES) * 30)) $(KEEP) fuzz-python -- $(BIN)/pytest -q -s tests/fuzz

bench-tables: .venv/dev ## tables from a file to an answer: rates, keyed releases, peaks of memory
	$(BIN)/python benches/tables.py --record
	$(BIN)/python benches/tables.py --memory --record

bench-kernels: ## the kernels alone, with criterion
	cargo bench -p bitldp-core --locked --bench kernels

papers: .venv/papers ## every figure of the papers again, report.html and the site's record; FORM=quick (default), medium or full
	$(BIN)/bitldp paper --all --form $(or $(FORM),quick) --resume --record benches/records/papers.json
	$(BIN)/python docs/record.py

paper-check: .venv/papers ## the papers' headlines on real data, which BITLDP_DATA must name; the figures are kept
	$(BIN)/python benches/paper_check.py

numbers: .venv/dev ## the tables of README and docs, from the records and from what is computed
	$(BIN)/python docs/fill.py

figures: .venv/papers ## the figures of docs/ and the numbers of each mechanism, again from the closed forms
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/sheets.py

# The module of pages where it can be built; elsewhere its reason, and all that takes it goes on without it.
.PHONY: module
module:
	@missing=$$(tests/wasm/setup 2>&1) && status=0 || status=$$?; case $$status in \
		0) $(MAKE) wasm ;; \
		69) echo "bitldp.wasm, which a release and the form of the site need, is left out: $$missing" ;; \
		*) echo "$$missing" >&2; exit $$status ;; esac

docs: .venv/docs module ## the site, strict on links, with notebooks run and the Rust crate's pages: target/site/index.html
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	cp -r target/doc target/site/rust

site-check: docs .venv/dev ## the built site: signatures, descriptions, headings; in Chromium heights, widths, contrast, keyboard
	$(BIN)/python -m pytest -q tests/house/test_built_site.py

wheel: dist/index.html ## a wheel of each distribution (bitldp: manylinux2014, abi3, Python >= 3.10) and a find-links page in dist/, tried on each Python here
	$(PYTHON) tests/wheel/every_python.py

release-check: ## each distribution of a release built, checked and tried as far as this machine can; WHAT="windows sdist" for some
	$(PYTHON) tests/wheel/release_check.py $(WHAT) $(RECORD)

example: dist/index.html ## examples/flower under flwr run and Flower's simulation engine, from the wheel of dist/ (Python >= 3.11)
	rm -rf target/example
	$(PYTHON) -m venv target/example
	target/example/bin/pip install --quiet --find-links dist 'bitldp[fl]' scikit-learn 'flwr[simulation]>=1.41,<1.43'
	target/example/bin/python examples/flower/simulate.py

# Built with zig as its linker, which knows the old C library that a manylinux2014 wheel asks for.
dist/index.html: .venv/tools $(SOURCES) $(shell find python -name '*.py' -o -name '*.html' -o -name '*.css')
	rm -rf dist
	$(MAKE) module
	$(BIN)/pip install --quiet ziglang
	PATH="$$($(BIN)/python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))'):$$PATH" \
		$(BIN)/maturin build --release --locked --zig --compatibility manylinux2014 --out dist
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist python/papers
	cd dist && for wheel in *.whl; do echo "<a href=\"$$wheel\">$$wheel</a>"; done > $(@F)

# The environment: tools first, then the package with its extension module and the extras that a target needs. The demo
# takes the library alone; all others take both distributions, from this clone.
.venv/tools:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip 'hatchling>=1.27' 'maturin>=1.9,<2'
	touch $@

# What the demo needs is fetched while the extension module compiles, in a profile that takes a fraction of the time.
.venv/demo: .venv/tools $(SOURCES)
	$(BIN)/python tests/wheel/requirements.py $(@F) > .venv/demo.txt
	$(BIN)/maturin build --quiet --locked --profile demo --out target/demo-wheel & compiling=$$!; \
		$(INSTALL) --requirement .venv/demo.txt && wait $$compiling
	MATURIN_PEP517_ARGS='--locked --profile demo' $(INSTALL) --no-build-isolation --no-deps --editable .
	touch $@

.venv/dev .venv/bench .venv/docs .venv/papers: .venv/tools $(SOURCES)
	MATURIN_PEP517_ARGS=--locked $(INSTALL) --no-build-isolation --editable '.[$(@F)]' --editable python/papers
	touch $@

clean:
	rm -rf .venv target dist demo-output bench-output
