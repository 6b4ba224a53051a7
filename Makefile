# Thin: each target is a few words to meson, ninja or a script in tools/.
#
#   make         build/hapax, build/libhapax.so, build/libhapax.a
#   make run     install what is missing, build, start a service and hapax in front of it
#   make demo    show the commands at work
#   make test    install what is missing, build, run every test
#   make asan    every test under AddressSanitizer and UBSan of clang; make tsan: under ThreadSanitizer
#   make lint    what a machine can say about the source; make fmt: lay it out
#   make proof   the full counts; the table goes to build/proof.txt. Takes long.
#   make mutants known bugs, planted one at a time: the tests must catch each of them
#   make soak    random seeds until stopped or until one fails
#   make bench   figures against peers, into bench/results/
#   make install DESTDIR and PREFIX as usual; make clean

PREFIX ?= /usr/local

.PHONY: all run demo test proof mutants soak bench lint fmt asan tsan install clean
# build/ is shared by the targets; parallelism is ninja's.
.NOTPARALLEL:

all: build/build.ninja
	@ninja -C build product

build/build.ninja:
	@tools/setup --check build
	@tools/configure build --prefix='$(PREFIX)'

run:
	@tools/setup build run
	@$(MAKE) --no-print-directory all
	@tools/run

demo:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@tools/demo

test:
	@tools/setup build test
	@tools/suite release fuzz

asan:
	@tools/setup build test
	@HAPAX_TEST_SCALE=$${HAPAX_TEST_SCALE:-0.25} tools/suite asan

tsan:
	@tools/setup build test
	@HAPAX_TEST_SCALE=$${HAPAX_TEST_SCALE:-0.25} tools/suite tsan

proof:
	@tools/setup build test proof
	@tools/proof

mutants:
	@tools/setup build test
	@tools/mutants $(BUG)

soak:
	@tools/setup build test
	@tools/soak

bench:
	@tools/setup build bench
	@$(MAKE) --no-print-directory all
	@bench/run

lint:
	@tools/setup lint
	@tools/lint

fmt:
	@tools/setup lint
	@tools/lint --format

install:
	@tools/setup --check build
	@tools/configure build --prefix='$(PREFIX)'
	@ninja -C build product
	@meson install -C build --no-rebuild

clean:
	@rm -rf build build-*
