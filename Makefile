# Tickwheel: the commands for people. The build itself is in CMakeLists.txt; all it makes lies under build/.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SECONDS ?= 60
TRACE ?= data/nginx-wrk.trace.zst
TICK ?= 22500
PORT ?= 7379
REDISMODULE_DIR ?= build/redismodule

# Quiet when all is well, the whole output when it is not.
quietly = $(2) > $(1)/make.log 2>&1 || { cat $(1)/make.log; exit 1; }
configure = mkdir -p $(1); $(call quietly,$(1),cmake -S . -B $(1) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DTICKWHEEL_COMMAND=ON $(2))
# The module wants the header of the server's module API: fetched, unless REDISMODULE_DIR= says where it lies.
with_module = $(if $(filter build/redismodule,$(REDISMODULE_DIR)),tools/redismodule build/redismodule,true)
module_options = -DTICKWHEEL_REDIS=ON -DREDISMODULE_DIR=$(abspath $(REDISMODULE_DIR))
compile = $(call quietly,$(1),cmake --build $(1) -j $(JOBS))

# Left out of account: TW_ASSERT, as a wheel that works never takes its other branch.
gcovr = gcovr --root . --exclude-branches-by-pattern '.*TW_ASSERT\(.*'
gate = $(gcovr) --filter $(1) --fail-under-line 100 --fail-under-branch $(2) build/coverage > build/coverage/gcovr.log 2>&1 || { cat build/coverage/gcovr.log; exit 1; }

with_tests = { tools/setup build test redis docs pages && $(with_module); } || exit 1; \
	$(call configure,build,-DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON $(module_options)); \
	$(call compile,build)

sanitized = { tools/setup build test check redis && $(with_module); } || exit 1; \
	$(call configure,build/sanitize,-DCMAKE_C_COMPILER=clang -DTICKWHEEL_SANITIZE=ON -DTICKWHEEL_DEBUG=1 $(module_options)); \
	$(call compile,build/sanitize)

# After a target that needs root: what it has made in build/ belongs to whoever the tree belongs to, who will build again.
give_back = [ "$$(id -u)" -ne 0 ] || [ ! -d build ] || chown -hR --reference=. build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

run: build ## ten seconds of a shop whose orders are placed, paid, moved and time out
	@echo "Ten seconds of a shop, as told in examples/orders.tasks. What is printed came due: time, lateness in us, key, text."
	@build/tickwheel run examples/orders.tasks
	@echo
	@echo "Next: make replay (half a million timers of a real kernel, every firing checked, the wheel drawn),"
	@echo "build/tickwheel run --help, the programs in build/examples/, make test. And for tasks that outlive their server:"
	@echo "make serve (Redis with delayed tasks as a data type, on port $(PORT))."

replay: build ## replay a trace of real timers, check every firing, draw the wheel
	@build/tickwheel replay $(TRACE)
	@build/tickwheel draw $(TRACE) --at $(TICK) -o build/wheel.svg
	@echo
	@echo "The wheel as it stood at tick $(TICK) is drawn in build/wheel.svg: open it in a browser."

test: ## all tests: unit, model, exhaustive, command, layers, docs, the module in real servers
	@$(with_tests)
	@tools/run-tests build -j $(JOBS)

build: ## the library and build/tickwheel
	@tools/setup build
	@$(call configure,build,-DTICKWHEEL_TESTS=OFF)
	@$(call compile,build)

module: ## build/tickwheel.so, the Redis module
	@tools/setup build
	@$(with_module)
	@$(call configure,build,-DTICKWHEEL_TESTS=OFF $(module_options))
	@$(call compile,build)

docs: ## the documents, the reference and the manual: build/site/index.html, build/man/
	@tools/setup docs
	@$(MAKE) build
	@docs/site/site . build/site build/tickwheel
	@echo "Open $(CURDIR)/build/site/index.html in a browser, or try: man build/man/tickwheel-wheel.3"

serve: ## Redis with the module on 127.0.0.1:7379 (PORT=), its data in var/, until Ctrl-C
	@tools/setup serve
	@$(MAKE) module
	@tools/serve --port '$(PORT)'

cluster: ## six servers; 100,000 tasks fall due, a primary is killed: what was late, doubled, lost
	@tools/setup serve
	@$(MAKE) module
	@TICKWHEEL_MODULE=build/tickwheel.so tools/cluster

bench: ## the benchmarks beside others, an hour and more; QUICK=1: minutes; PART=wheel, next, sched, loops, redis or cpp
	@case "$(PART)" in "" | wheel | next | sched | loops | redis | cpp) ;; *) echo "make bench: PART is '$(PART)': expected wheel, next, sched, loops, redis or cpp" >&2; exit 2 ;; esac
	@tools/setup build bench serve
	@$(with_module)
	@mkdir -p build/bench
	@$(call configure,build/native,-DTICKWHEEL_BENCH=ON -DTICKWHEEL_TESTS=OFF -DTICKWHEEL_NATIVE=OFF $(module_options))
	@$(call compile,build/native)
	@for part in $(or $(PART),wheel next sched loops redis cpp); do \
		case $$part in redis) program=build/native/tickwheel.so ;; *) program=build/native/$${part}_bench ;; esac; \
		bench/$$part/run $$program $(CURDIR)/build/bench $(if $(QUICK),--quick) $(if $(KEEP),--keep $(KEEP)) || exit; done

check: format-check lint sanitize check-redis check-servers races audit check-amalgamation coverage ## format, lint, sanitizers, invariants, coverage

format: ## let clang-format lay out the sources
	@tools/setup check
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i

format-check: ## fails where clang-format would change something
	@tools/setup check
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format --dry-run -Werror

lint: ## clang-tidy over the library and the command
	@tools/setup build test check
	@$(with_module)
	@$(call configure,build/lint,-DTICKWHEEL_TESTS=OFF $(module_options))
	@git ls-files 'src/*.c' 'command/*.c' | xargs clang-tidy --quiet -p build/lint

sanitize: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(sanitized)
	@TICKWHEEL_LIGHT=1 tools/run-tests build/sanitize -j $(JOBS) -LE server

check-redis: ## the module's tests under the same, in a redis-server that is built so; defragmentation in another
	@$(sanitized)
	@tests/redis/make_server asan build/redis-asan
	@REDIS_SERVER=$(CURDIR)/build/redis-asan/redis-server TICKWHEEL_LIGHT=1 \
		tools/run-tests build/sanitize -j $(JOBS) -L server
	@tests/redis/make_server jemalloc build/redis-jemalloc
	@$(MAKE) module
	@REDIS_SERVER_DEFRAG=$(CURDIR)/build/redis-jemalloc/redis-server TICKWHEEL_MODULE=build/tickwheel.so \
		/usr/bin/python3 -B -m pytest -q tests/redis/server/test_memory.py -k defrag

check-servers: ## the module's tests with the Redis and the Valkey of a newer Debian
	@$(with_tests)
	@tests/redis/fetch_servers build/servers
	@for one in redis valkey; do TICKWHEEL_LIGHT=1 REDIS_SERVER=$(CURDIR)/build/servers/$$one-server REDIS_CLI=$(CURDIR)/build/servers/$$one-cli \
		tools/run-tests build -j $(JOBS) -L server || exit 1; done

races: ## the scheduler's storm under ThreadSanitizer, for SECONDS=60
	@tools/setup build test check
	@$(call configure,build/races,-DTICKWHEEL_RACES=ON -DTICKWHEEL_REDIS=OFF)
	@$(call compile,build/races)
	@build/races/tests/test_sched_threads --seconds $(SECONDS)

audit: ## the behaviour tests with the whole wheel, and the shard of a scheduler, checked after every call
	@tools/setup build test
	@$(call configure,build/audit,-DTICKWHEEL_DEBUG=2 -DTICKWHEEL_REDIS=OFF)
	@$(call compile,build/audit)
	@tools/run-tests build/audit -j $(JOBS) -R 'contract|wheel_wheel|geometry|long_life|fuzz|loops_core|^sched' -E sched_clock

coverage: ## 100 % of the lines; 100 % of the branches of src/wheel, 95 % of src/sched and src/loops
	@tools/setup build test check
	@$(call configure,build/coverage,-DTICKWHEEL_COVERAGE=ON -DTICKWHEEL_REDIS=OFF -DCMAKE_BUILD_TYPE=None)
	@$(call compile,build/coverage)
	@find build/coverage -name '*.gcda' -delete
	@TICKWHEEL_LIGHT=1 tools/run-tests build/coverage -j $(JOBS) > build/coverage/ctest.log 2>&1 || { cat build/coverage/ctest.log; exit 1; }
	@$(gcovr) --filter src/ --branches build/coverage | grep -E '^(src|TOTAL|File)'
	@$(call gate,src/wheel/,100)
	@$(call gate,src/sched/,95)
	@$(call gate,src/loops/,95)

coverage-redis: ## which lines of src/redis no test takes; servers that are killed do not tell theirs
	@tools/setup build test check redis
	@$(with_module)
	@$(call configure,build/coverage-redis,-DTICKWHEEL_COVERAGE=ON -DCMAKE_BUILD_TYPE=None $(module_options))
	@$(call compile,build/coverage-redis)
	@find build/coverage-redis -name '*.gcda' -delete
	@TICKWHEEL_LIGHT=1 tools/run-tests build/coverage-redis -j $(JOBS) -R redis_ > build/coverage-redis/ctest.log 2>&1 || { cat build/coverage-redis/ctest.log; exit 1; }
	@$(gcovr) --filter src/redis/ build/coverage-redis

valgrind: build ## the contract tests under valgrind
	@tools/setup build test check
	@$(call configure,build,-DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON)
	@$(call compile,build)
	@for t in contract wheel geometry loop epoll_calls; do valgrind -q --leak-check=full --error-exitcode=1 build/tests/test_$$t > build/make.log 2>&1 || { cat build/make.log; exit 1; }; done; echo "valgrind: clean"

fuzz: ## libFuzzer with the model inside, for SECONDS=60
	@tools/setup build test check
	@mkdir -p build/fuzz-corpus
	@$(call configure,build/fuzz,-DTICKWHEEL_REDIS=OFF -DCMAKE_C_COMPILER=clang -DTICKWHEEL_FUZZ=ON -DTICKWHEEL_SANITIZE=ON -DTICKWHEEL_DEBUG=1)
	@$(call compile,build/fuzz)
	@build/fuzz/tests/fuzz_wheel -max_total_time=$(SECONDS) -max_len=1024 build/fuzz-corpus tests/wheel/corpus

soak: ## random operations against the model, for SECONDS=60
	@tools/setup build test
	@$(call configure,build,-DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON)
	@$(call compile,build)
	@build/tests/test_model --seconds $(SECONDS)

figures: ## docs/figures/*.svg, drawn anew from the library and the benchmarks' results
	@tools/setup build test
	@$(call configure,build,-DTICKWHEEL_TESTS=ON -DTICKWHEEL_WERROR=ON)
	@$(call compile,build)
	@docs/figures/draw build/tests/figure_facts

generate: build ## what is generated in the documentation, filled anew
	@tools/setup test
	@tools/generated build/tickwheel *.md docs/*.md

# These names go into scripts as they are.
plain_names = case '$(PREFIX):$(DESTDIR)' in *[[:space:]\&\|\\\"\$$]* | '~'* | *:'~'*) \
	echo "make $@: PREFIX is '$(PREFIX)' and DESTDIR '$(DESTDIR)': expected names of folders without blanks, quotes, ~, & and the like" >&2; exit 2 ;; esac

install: ## into PREFIX=/usr/local, below DESTDIR; the Redis module too, after make module
	@$(plain_names)
	@tools/setup docs || echo 'make install: without lowdown there are no manual pages'
	@$(MAKE) build || { $(give_back); exit 1; }
	@DESTDIR='$(DESTDIR)' $(call quietly,build,cmake --install build)
	@{ sed 's|^|$(DESTDIR)|' build/install_manifest.txt; echo; cat build/installed 2>/dev/null || true; } | sed '/^$$/d' | sort -u > build/installed.new
	@mv build/installed.new build/installed
	@$(give_back)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo "installed below $(DESTDIR)$(abspath $(PREFIX)); make uninstall with the same PREFIX and DESTDIR takes it away"

uninstall: ## take away what make install has put into PREFIX, below DESTDIR
	@$(plain_names)
	@tools/uninstall build/installed '$(DESTDIR)$(abspath $(PREFIX))'
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

deb: ## the Debian packages, into build/deb
	@tools/setup deb
	@$(with_module)
	@REDISMODULE_DIR='$(REDISMODULE_DIR)' JOBS='$(JOBS)' tools/deb build/deb

check-deb: deb ## these installed, used and removed in a new minimal Debian 12 (needs root)
	@tools/check-deb build/deb; status=$$?; $(give_back); exit $$status

amalgamation: ## the wheel as two files to drop into a tree: build/amalgamation/tickwheel.h and .c
	@tools/setup amalgamation
	@tools/amalgamate build/amalgamation

check-amalgamation: amalgamation ## these two, by gcc and clang, for 64 and 32 bits, through the wheel's own tests
	@tools/setup build test check
	@tests/install/fetch_cmocka build/cmocka-i386
	@for bits in 64 32; do for compiler in gcc clang; do \
		tests/install/test_amalgamation . $$compiler $$bits $(CURDIR)/build/cmocka-i386 || exit 1; done; done

.PHONY: deb check-deb amalgamation check-amalgamation

fresh: ## prove the set-up in a new minimal Debian 12 (needs root)
	@tools/fresh

clean: ## remove build/
	@rm -rf build

.PHONY: help run replay test build docs module serve cluster bench check format format-check lint sanitize races audit coverage valgrind check-redis check-servers coverage-redis fuzz soak figures generate install uninstall fresh clean
