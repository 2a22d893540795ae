# Tickwheel: the commands for people. The build itself is in CMakeLists.txt; all it makes lies under build/.
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SECONDS ?= 60
TRACE ?= data/nginx-wrk.trace.zst
TICK ?= 22500
PORT ?= 7379
REDISMODULE_DIR ?= build/redismodule
export JOBS PREFIX DESTDIR REDISMODULE_DIR

# After a target that needs root: what it made in build/ belongs to the tree's owner, who will build again.
give_back = [ "$$(id -u)" -ne 0 ] || [ ! -d build ] || chown -hR --reference=. build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

run: build ## ten seconds of a shop whose orders are placed, paid, moved and time out
	@echo "Ten seconds of a shop, as told in examples/orders.tasks. What is printed came due:" \
	    "time, lateness in us, key, text."
	@build/tickwheel run examples/orders.tasks && echo
	@echo "Next: make replay (half a million timers of a real kernel, every firing checked, the wheel drawn),"
	@echo "build/tickwheel run --help, the programs in build/examples/, make test." \
	    "And for tasks that outlive their server:"
	@echo "make serve (Redis with delayed tasks as a data type, on port $(PORT))."

replay: build ## replay a trace of real timers, check every firing, draw the wheel
	@build/tickwheel replay $(TRACE)
	@build/tickwheel draw $(TRACE) --at $(TICK) -o build/wheel.svg
	@echo "The wheel as it stood at tick $(TICK) is drawn in build/wheel.svg: open it in a browser."

test: ## all tests: unit, model, exhaustive, command, layers, docs, the module in real servers
	@tools/setup build test redis docs pages
	@tools/build build --module -DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON
	@tools/run-tests build -LE long

build: ## the library and build/tickwheel
	@tools/setup build
	@tools/build build -DTICKWHEEL_TESTS=OFF

module: ## build/tickwheel.so, the Redis module
	@tools/setup build
	@tools/build build --module -DTICKWHEEL_TESTS=OFF

docs: ## the documents, the reference and the manual: build/site/index.html, build/man/
	@tools/setup docs
	@$(MAKE) build
	@docs/site/site . build/site build/tickwheel
	@echo "Open $(CURDIR)/build/site/index.html in a browser, or try: man build/man/tickwheel-wheel.3"

serve: module ## Redis with the module on 127.0.0.1:7379 (PORT=), its data in var/, until Ctrl-C
	@tools/setup serve
	@tools/serve --port '$(PORT)'

cluster: module ## six servers; 100,000 tasks fall due, a primary is killed: what was late, doubled, lost
	@tools/setup serve
	@TICKWHEEL_MODULE=build/tickwheel.so tools/cluster

bench: ## the benchmarks, an hour and more; QUICK=1: minutes; PART=wheel, next, sched, loops, redis or cpp
	@bench/run $(if $(QUICK),--quick) $(if $(KEEP),--keep $(KEEP)) $(PART)

check: ## all of rounds to coverage
	@FOR_SECONDS=$(SECONDS) tools/check rounds format lint sanitize redis servers races audit amalgamation coverage
rounds: ## the long rounds of the tests: crashes, a million tasks at once, gigabytes, larger wheels
format-check: ## fails where clang-format would change something
lint: ## clang-tidy over the library and the command
sanitize: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
check-redis: ## the module's tests under the same, in a redis-server built so; defragmentation in another
check-servers: ## the module's tests with the Redis and the Valkey of a newer Debian
races: ## the scheduler's storm under ThreadSanitizer, for SECONDS=60
audit: ## the behaviour tests with the whole wheel checked after every call
check-amalgamation: amalgamation ## the two files by gcc and clang, 64 and 32 bits, through the wheel's tests
coverage: ## 100 % of the lines; 100 % of the branches of src/wheel, 95 % of src/sched and src/loops
coverage-redis: ## which lines of src/redis no test takes; servers that are killed do not tell theirs
valgrind: ## the contract tests under valgrind
fuzz: ## libFuzzer with the model inside, for SECONDS=60
soak: ## random operations against the model, for SECONDS=60
CHECKS = rounds format-check lint sanitize check-redis check-servers races audit check-amalgamation coverage \
    coverage-redis valgrind fuzz soak
$(CHECKS): ; @FOR_SECONDS=$(SECONDS) tools/check $(patsubst check-%,%,$(@:format-check=format))

format: ## let clang-format lay out the sources
	@tools/setup check
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i

figures: ## docs/figures/*.svg, drawn anew from the library and the benchmarks' results
	@tools/setup build test
	@tools/build build -DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON
	@docs/figures/draw build/tests/figure_facts

generate: build ## what is generated in the documentation, filled anew
	@tools/setup test
	@tools/generated build/tickwheel *.md docs/*.md

install: ## into PREFIX=/usr/local, below DESTDIR; the Redis module too, after make module
	@tools/install; status=$$?; $(give_back); exit $$status

uninstall: ## take away what make install has put into PREFIX, below DESTDIR
	@tools/install --undo

deb: ## the Debian packages, into build/deb
	@tools/setup deb
	@[ '$(REDISMODULE_DIR)' != build/redismodule ] || tools/redismodule build/redismodule
	@tools/deb build/deb

check-deb: deb ## these installed, used and removed in a new minimal Debian 12 (needs root)
	@tools/check-deb build/deb; status=$$?; $(give_back); exit $$status

amalgamation: ## the wheel as two files to drop into a tree: build/amalgamation/tickwheel.h and .c
	@tools/setup amalgamation
	@tools/amalgamate build/amalgamation

fresh: ## prove the set-up in a new minimal Debian 12 (needs root)
	@tools/fresh

clean: ## remove build/
	@rm -rf build

.PHONY: $(CHECKS) help run replay test build docs module serve cluster bench check format figures \
    generate install uninstall deb check-deb amalgamation fresh clean
