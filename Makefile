# The front door: `make demo` for the first success, `make test` for everything. The build itself is CMake's.
#
#   TORCH=system   Debian's LibTorch (installed if missing)
#   TORCH=DIR      a LibTorch folder, the one that holds share/cmake/Torch; CUDA included, no root needed
#   TORCH=pip      the torch of the active Python
#   DEPS=off       do not look for missing packages
#   JOBS=N         compile this many files at once
#   WERROR=ON      warnings are errors
#   COMPILERS=...  those of `make compilers`

TORCH ?= system
DEPS  ?= on
BUILD := build
TESTS ?= OFF
WERROR ?= OFF
COMPILERS ?= g++-12 clang++-16 clang++-19
FUZZ_SECONDS ?= 4
BANK_NETWORKS ?= 6400
BANK_SEED ?= 1

# A file that includes torch takes up to 2 GB to compile: as many jobs as cores, but no more than memory carries.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemTotal/ {fit = int($$2 / 2000000); if (fit < 1) fit = 1; \
                                        print (fit < cores ? fit : cores)}' /proc/meminfo)

BENCHES := $(notdir $(basename $(wildcard bench/*_bench.cpp)))

.DEFAULT_GOAL := build
.PHONY: build demo test compilers deb bench bank fuzz campaign clean help deps-build deps-test deps-fuzz deps-compilers deps-deb configure

build: deps-build configure  ## build the program: build/rankscope
	@cmake --build $(BUILD) --parallel $(JOBS)
	@echo "Built $(BUILD)/rankscope. Try: $(BUILD)/rankscope scan"

demo: deps-build configure  ## the built-in model as it is and without its skips, side by side
	@cmake --build $(BUILD) --parallel $(JOBS) --target rankscope_program
	@$(BUILD)/rankscope scan --off skip --out out/demo --force
	@echo "Open out/demo/report.html in a browser. Next, a model of yours: $(BUILD)/rankscope scan PATH/TO/MODEL --text FILE"

test:  ## build and run every test
	@$(MAKE) --no-print-directory TESTS=ON deps-test configure
	@cmake --build $(BUILD) --parallel $(JOBS)
	@# Three at once on two cores, since some wait; a thread that waits must not take the core of another test's.
	@OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 ctest --test-dir $(BUILD) --output-on-failure -j3
	@echo "All tests passed. Details: $(BUILD)/Testing/Temporary/LastTest.log"

compilers: deps-compilers  ## what needs no LibTorch by GCC 12, Clang 16 and 19, each file alone, warnings as errors
	@JOBS=$(JOBS) scripts/compilers.sh $(COMPILERS)

deb: deps-deb configure  ## a Debian package: build/rankscope_VERSION_ARCH.deb
	@cmake --build $(BUILD) --parallel $(JOBS)
	@cd $(BUILD) && cpack -G DEB >cpack.log 2>&1 || { cat cpack.log >&2; exit 1; }
	@echo "Packed $$(ls -t $(BUILD)/*.deb | head -1). Install: apt install ./FILE.deb; scripts/test-deb.sh tries it in a bare root."

bench: deps-build configure  ## build and run the benchmarks: the one table of training, then one question each
	@cmake --build $(BUILD) --parallel $(JOBS) --target rankscope_program $(BENCHES)
	@echo "== rankscope bench"; $(BUILD)/rankscope bench
	@for bench in $(BENCHES); do echo "== $$bench"; $(BUILD)/$$bench || exit 1; done
	@echo "Ran rankscope bench and $(words $(BENCHES)) benchmarks; each prints ratios measured in one run."

bank: deps-build configure  ## how often the verdict's statements are true, on planted networks; BANK_SEED=2 for others
	@cmake --build $(BUILD) --parallel $(JOBS) --target bank
	@$(BUILD)/bank $(BANK_NETWORKS) $(BANK_SEED) $(JOBS)

fuzz: deps-fuzz  ## fuzz the readers under sanitizers for a few seconds each; FUZZ_SECONDS=600 for longer
	@fuzz/run.sh $(FUZZ_SECONDS)

campaign:  ## break it on purpose for hours: kills, full disks, little memory, fuzzers, sanitizers
	@$(MAKE) --no-print-directory TESTS=ON deps-test deps-fuzz configure
	@cmake --build $(BUILD) --parallel $(JOBS)
	@scripts/campaign.sh $(BUILD) whole

clean:  ## remove the build folder and the demo's output
	rm -rf $(BUILD) out/demo

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile
	@sed -n 's/^#   \([A-Z]*=.*\)/  \1/p' Makefile

deps-build deps-test deps-fuzz deps-compilers deps-deb: deps-%:
ifneq ($(DEPS),off)
	@TORCH='$(TORCH)' scripts/install-deps.sh $*
endif

# Configuring costs seconds, so it happens when the answers change: scripts/configure.sh remembers them.
configure:
	@scripts/configure.sh $(BUILD) '$(TORCH)' -DRANKSCOPE_TESTS=$(TESTS) -DRANKSCOPE_WERROR=$(WERROR)
