# Tickwheel: the commands for people. CMakeLists.txt describes the build itself. All results are in build/.
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SECONDS ?= 60
ROUNDS ?= 10
TRACE ?= data/nginx-wrk.trace.zst
TICK ?= 22500
PORT ?= 7379
REDISMODULE_DIR ?= build/redismodule
export JOBS PREFIX DESTDIR REDISMODULE_DIR

# After a target that runs as root: gives its files in build/ to the tree's owner, who will build again.
give_back = [ "$$(id -u)" -ne 0 ] || [ ! -d build ] || chown -hR --reference=. build

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

# The tasks lie in var/shop.db. The program that runs them is killed in the middle, and started again.
run: build ## run ten seconds of a shop whose tasks survive kill -9
	@echo "Ten seconds of a shop, from examples/orders.tasks. Its tasks lie in the file var/shop.db. Each line" \
	    "is a task that is due: time, lateness in us, key, text."
	@tools/shop build/tickwheel examples/orders.tasks var/shop.db && echo
	@echo "Next: build/tickwheel tasks --store var/shop.db, build/tickwheel run --help, make replay (half a" \
	    "million timers of a real kernel, every firing checked, the wheel drawn), the programs in" \
	    "build/examples/, make test."
	@echo "For tasks on many machines: make serve (Redis with delayed tasks as a data type, port $(PORT))."

# Checks every firing, and draws the wheel. TRACE= and TICK= choose another trace and tick.
replay: build ## replay a recorded trace of real timers
	@build/tickwheel trace replay $(TRACE)
	@build/tickwheel trace draw $(TRACE) --at $(TICK)

# Unit tests, model, exhaustive tests, command, layers, documents, and the module in real servers.
test: ## run all tests, except the long rounds
	@tools/setup build test redis clients docs node
	@tests/clients/fetch_node_sqlite build/node-sqlite3
	@tools/build build --module -DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON
	@tools/run-tests build -LE long

# Room by room: each installs and builds only what it needs, below build/room-NAME.
ROOMS = test-wheel test-sched test-loops test-store test-redis test-command test-docs
test-wheel: ## run the tests of one room; also test-sched, -loops, -store, -redis, -command, -docs
$(ROOMS): ; @tools/test-room $(@:test-%=%)

build: ## build the libraries and build/tickwheel
	@tools/setup build
	@tools/build build -DTICKWHEEL_TESTS=OFF

module: ## build the Redis module, build/tickwheel.so
	@tools/setup build
	@tools/build build --module -DTICKWHEEL_TESTS=OFF

# The documents, the reference and the manual: build/site/index.html, build/man/.
docs: ## build the site and the manual pages
	@tools/setup docs
	@$(MAKE) build
	@docs/site/site . build/site build/tickwheel
	@echo "Open $(CURDIR)/build/site/index.html in a browser, or try: man build/man/tickwheel-wheel.3"

# Its data is in var/. PORT= chooses another port.
serve: module ## run Redis with the module on 127.0.0.1:7379
	@tools/setup serve
	@tools/serve --port '$(PORT)'

# 100,000 tasks are due on six servers, and a primary is killed. Then it prints the late, doubled and lost
# tasks.
cluster: module ## show how a cluster survives the loss of a primary
	@tools/setup serve
	@TICKWHEEL_MODULE=build/tickwheel.so tools/cluster

# PART= runs a part only: wheel, next, sched, loops, redis, work, store, late or cpp.
bench: ## run the benchmarks, over an hour; QUICK=1: minutes
	@bench/run $(if $(QUICK),--quick) $(if $(KEEP),--keep $(KEEP)) $(PART)

check: ## run the checks below, but for stress, up to coverage
	@FOR_SECONDS=$(SECONDS) tools/check rounds format lint sanitize redis servers races audit \
	    amalgamation coverage
# Crashes, power cuts, kills, damaged files, random changes, a million tasks at once, gigabytes, larger wheels,
# musl, a bare machine, and the pages in a browser.
rounds: ## run the long rounds of the tests
# Installations, each header alone, laws that compile all sources once more, the pages in a browser.
rest: ## run the long tests that do not end in _long
# ROUNDS= rounds beside busy loops, each some ten minutes, one on one processor, three with late threads.
# build/stress/summary has the results.
stress: ## run the tests while the machine is busy; ROUNDS=10
format-check: ## fail if clang-format would change a source file
lint: ## run clang-tidy on the C sources, mypy on the Python client
sanitize: ## run the tests with address and UB sanitizers
# In a redis-server that is built with the same sanitizers; defragmentation in another server.
check-redis: ## run the module's tests with sanitizers
check-servers: ## run the module's tests with newer servers
races: ## run the scheduler with ThreadSanitizer; SECONDS=60
audit: ## check the whole wheel after every call in tests
# Compiles with gcc and clang, for 64 and 32 bits, and runs the tests of the wheel.
check-amalgamation: amalgamation ## test the amalgamation with both compilers
# 100 % of the lines; of the branches all of src/task and src/wheel, 95 % of src/sched, src/store and src/loops.
coverage: ## require all lines to be covered by tests
# Servers that are killed do not report their lines.
coverage-redis: ## list the lines of src/redis that no test runs
valgrind: ## run the contract tests under valgrind
fuzz: ## search for inputs that break a reader; TARGET=name SECONDS=60
soak: ## run random operations on the model; SECONDS=60
CHECKS = rounds rest stress format-check lint sanitize check-redis check-servers races audit \
    check-amalgamation coverage coverage-redis valgrind fuzz soak
$(CHECKS):
	@FOR_SECONDS=$(SECONDS) ROUNDS=$(ROUNDS) TARGET=$(TARGET) \
	    tools/check $(patsubst check-%,%,$(@:format-check=format))

format: ## format the sources with clang-format
	@tools/setup check
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i

# From the library and the results of the benchmarks.
figures: ## draw docs/figures/*.svg again
	@tools/setup build test
	@tools/build build -DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON
	@docs/figures/draw build/tests/figure_facts

generate: build ## fill the generated parts of the documentation
	@tools/setup test
	@tools/generated build/tickwheel *.md docs/*.md

# Below DESTDIR=, if it is set. After make module, it also installs the Redis module.
install: ## install into PREFIX=/usr/local
	@tools/install; status=$$?; $(give_back); exit $$status

uninstall: ## remove the files of make install, with its PREFIX=
	@tools/install --undo

deb: ## build the Debian packages, in build/deb
	@tools/setup deb
	@[ '$(REDISMODULE_DIR)' != build/redismodule ] || tools/redismodule build/redismodule
	@tools/deb build/deb

# make check-deb compares the libraries with these files.
abi: ## write the binary interface into src/*/*.abi
	@tools/setup deb
	@tools/abi --write

# Installs, uses and removes them in a new minimal Debian 12.
check-deb: ## test the Debian packages (needs root)
	@tools/setup deb
	@tools/check-deb build/deb make deb; status=$$?; $(give_back); exit $$status

# build/amalgamation/tickwheel.h and tickwheel.c, to add to a source tree.
amalgamation: ## make the wheel as two files, to drop into a tree
	@tools/setup amalgamation
	@tools/amalgamate build/amalgamation

fresh: ## test the set-up in a new Debian 12 (needs root)
	@tools/fresh

clean: ## remove build/
	@rm -rf build

.PHONY: $(CHECKS) $(ROOMS) help run replay test build docs module serve cluster bench check format figures \
    generate install uninstall deb abi check-deb amalgamation fresh clean
