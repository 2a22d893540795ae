/* SPDX-License-Identifier: MIT
 *
 * wheel_bench: every workload on every engine, in rounds. Within a round the engines run the same load one
 * after the other, so that a disturbance of the machine that lasts for a while disturbs all of them. The
 * order rotates from round to round. An engine that did not fire the expected timers voids the whole run.
 */
#include "bench.h"
#include "results.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENGINE_TABLE(X)                                                                                        \
    X(engine_tickwheel)                                                                                        \
    X(engine_tickwheel_small)                                                                                  \
    X(engine_tickwheel_clock)                                                                                  \
    X(engine_tickwheel_hashed)                                                                                 \
    X(engine_tickwheel_growing)                                                                                \
    X(engine_tickwheel_fixed)                                                                                  \
    X(engine_tickwheel_inline)                                                                                 \
    X(engine_libev)                                                                                            \
    X(engine_libuv)                                                                                            \
    X(engine_libevent)                                                                                         \
    X(engine_heap4)                                                                                            \
    X(engine_heap2)                                                                                            \
    X(engine_rbtree)                                                                                           \
    X(engine_list_wheel)                                                                                       \
    X(engine_list_wheel_inline)                                                                                \
    X(engine_floor)

#define ENGINE_DECLARE(symbol) extern const struct engine symbol;
ENGINE_TABLE(ENGINE_DECLARE)
#undef ENGINE_DECLARE

#define ENGINE_POINTER(symbol) &symbol,
const struct engine *const bench_engines[] = {ENGINE_TABLE(ENGINE_POINTER)};
#undef ENGINE_POINTER
const size_t bench_engine_count = sizeof bench_engines / sizeof bench_engines[0];

#define WORKLOAD_NAME(id, name, text) name,
const char *const workload_names[WORKLOADS] = {WORKLOAD_TABLE(WORKLOAD_NAME)};
#undef WORKLOAD_NAME
#define WORKLOAD_TEXT(id, name, text) text,
const char *const workload_texts[WORKLOADS] = {WORKLOAD_TABLE(WORKLOAD_TEXT)};
#undef WORKLOAD_TEXT

enum { FULL_ROUNDS = 5, HUGE_ROUNDS = 3, QUICK_ROUNDS = 3, HUGE_TIMERS = 10000000, QUICK_SECONDS = 40 };

static const char usage[] =
    "usage: wheel_bench [options]\n"
    "  --quick            fewer operations, sizes to 1e6, at 1e6 only the targets; under a minute\n"
    "  --out DIR          write wheel.tsv, wheel-raw.tsv, wheel-skipped.tsv there\n"
    "  --workload A,B     only these workloads        --engine A,B   only these engines\n"
    "  --sizes N,M        only these numbers of timers --rounds N     so many rounds\n"
    "  --merge FILE       add the raw results of another process\n"
    "  --huge-pages       objects on huge pages\n"
    "  --list             name the workloads and engines\n"
    "  --build            tell the compiler and its flags\n";

struct options {
    bool quick, huge_pages;
    const char *out, *workloads, *engines, *merge;
    int rounds;
};

static struct results results = {.size = {1, 1000, 100000, 1000000, 10000000}, .sizes = 5};
static struct options options;
static void *arena;
static float tick_ns[STEADY_TICKS_MAX];
static uint64_t began_ns;

/* ---- choosing the runs ----------------------------------------------------------------------------------- */

/* Whether the comma-separated list has the name, or there is no list. */
static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return list == NULL;
}

/* Whether a quick run measures this. At 1e6 timers it measures only the figures that targets and plots need
 * most. */
static bool quick_enough(const struct engine *engine, enum workload workload, uint32_t timers)
{
    if (!options.quick || timers < 1000000 || workload < ADD_UNIFORM)
        return true;
    switch (workload) {
    case CHURN:
        return listed(
            "tickwheel,tickwheel-fixed,tickwheel-inline,list-wheel,list-wheel-inline,heap4,libev,libuv",
            engine->name);
    case EXPIRE_TICK:
        return listed("tickwheel,tickwheel-fixed,list-wheel,libuv", engine->name);
    case MIX:
    case HEARTBEAT:
    case STEADY:
        return listed("tickwheel,tickwheel-fixed,list-wheel,heap4", engine->name);
    default:
        return false;
    }
}

static bool needs_size(enum workload workload, uint32_t timers)
{
    return (workload >= NEXT_FAR) == (timers == 1);
}

/* The reason why an engine is left out of a workload at a size, or NULL if it is not left out. */
static const char *reason_to_skip(const struct engine *engine, enum workload workload, uint32_t timers)
{
    if (engine->lacks >> workload & 1)
        return engine->why_lacks;
    if (!quick_enough(engine, workload, timers))
        return "left out of a quick run";
    double available = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (timers >= HUGE_TIMERS && (double)timers * (double)engine->object_size * 1.5 > available)
        return "not enough free memory";
    return NULL;
}

/* Whether a workload makes sense for an engine: only the floor engine runs the floors, and it runs nothing
 * else. */
static bool applies(const struct engine *engine, enum workload workload)
{
    bool floor = workload < ADD_UNIFORM, is_floor = strcmp(engine->name, "floor") == 0;
    return floor == is_floor && (floor || listed(options.workloads, workload_names[workload])) &&
           (floor || listed(options.engines, engine->name));
}

/* ---- running --------------------------------------------------------------------------------------------- */

static void progress(int round, const struct load *load, const struct engine *engine)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%4.0f s  round %d  %u timers  %s  %s", (double)(bench_real_ns() - began_ns) / 1e9,
            round + 1, load->timers, workload_names[load->workload], engine->name);
}

static void check_tally(const struct engine *engine, const struct load *load, const struct tally *tally)
{
    if (tally->fired == load->expected.fired && tally->sum == load->expected.sum)
        return;
    fprintf(stderr,
            "\nwheel_bench: %s, %s, %u timers: fired %llu times (sum of ticks %llx), expected %llu (%llx).\n"
            "An engine that does not do the work makes the benchmark void.\n",
            engine->name, workload_names[load->workload], load->timers, (unsigned long long)tally->fired,
            (unsigned long long)tally->sum, (unsigned long long)load->expected.fired,
            (unsigned long long)load->expected.sum);
    exit(1);
}

static void record(struct cell *cell, int round, const struct outcome *outcome)
{
    cell->has[round] = true;
    cell->value[FIELD_NS][round] = outcome->ns / (double)outcome->ops;
    cell->value[FIELD_WORST_US][round] = outcome->worst_ns / 1000;
    cell->value[FIELD_BYTES][round] = outcome->bytes_per_timer;
    if (outcome->refiled_most > cell->refiled_most)
        cell->refiled_most = outcome->refiled_most;
    if (outcome->refiled_rule > cell->refiled_rule)
        cell->refiled_rule = outcome->refiled_rule;
}

static void run_engine(int e, const struct load *load, int size, int round)
{
    const struct engine *engine = bench_engines[e];
    struct cell *cell = &results.cell[load->workload][e][size];
    struct outcome outcome = {.tick_ns = tick_ns};
    if (!applies(engine, load->workload) || (engine->slow && load->timers >= HUGE_TIMERS && round > 0))
        return;
    cell->skipped = reason_to_skip(engine, load->workload, load->timers);
    if (cell->skipped != NULL)
        return;
    progress(round, load, engine);
    engine->run(engine, load, arena, &outcome);
    check_tally(engine, load, &outcome.tally);
    record(cell, round, &outcome);
    if (load->workload == STEADY)
        cell_take_ticks(cell, tick_ns, load->ticks);
}

static bool anybody_runs(enum workload workload, uint32_t timers)
{
    for (size_t e = 0; e < bench_engine_count; e++)
        if (applies(bench_engines[e], workload) && reason_to_skip(bench_engines[e], workload, timers) == NULL)
            return true;
    return false;
}

static void run_workload(enum workload workload, int size, int round)
{
    uint32_t timers = results.size[size];
    if (!needs_size(workload, timers))
        return;
    int count = (int)bench_engine_count;
    struct load *load;
    if (anybody_runs(workload, timers)) {
        bool tail = timers <= 1000 || (round == 0 && timers < (options.quick ? 1000000 : HUGE_TIMERS));
        uint64_t seed = workload == STEADY ? 1 : (uint64_t)round + 1; /* see cell_worst_us() */
        load = load_make(workload, timers, seed, options.quick, tail);
    } else {
        load = load_make(workload, 1, 1, true, false); /* only to note why the engines are left out */
        load->timers = timers;
    }
    for (int i = 0; i < count; i++)
        run_engine((i + round) % count, load, size, round);
    load_free(load);
}

static int rounds_for(uint32_t timers)
{
    if (options.rounds > 0)
        return options.rounds;
    return options.quick ? QUICK_ROUNDS : timers >= HUGE_TIMERS ? HUGE_ROUNDS : FULL_ROUNDS;
}

static void run_round(int round)
{
    for (int s = 0; s < results.sizes; s++)
        if (round < rounds_for(results.size[s]))
            for (int w = 0; w < WORKLOADS; w++)
                run_workload((enum workload)w, s, round);
}

/* Whether there is time for another round. On a slow machine a quick run has fewer rounds, so that it does
 * not last longer. */
static bool time_for_another(int rounds_done)
{
    double passed = (double)(bench_real_ns() - began_ns) / 1e9;
    return !options.quick || options.rounds > 0 || passed * (rounds_done + 1) / rounds_done < QUICK_SECONDS;
}

static int run_rounds(void)
{
    int round = 0;
    began_ns = bench_real_ns();
    do
        run_round(round++);
    while (round < rounds_for(0) && time_for_another(round));
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    return round;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* The objects of each engine lie in the same piece of memory, so all engines use the same pages, and only the
 * first one has page faults. The pages are 4 KiB, as malloc gives them, unless an option asks for others. */
static void make_arena(void)
{
    size_t largest = 0;
    for (size_t e = 0; e < bench_engine_count; e++)
        if (bench_engines[e]->object_size > largest)
            largest = bench_engines[e]->object_size;
    size_t size = largest * results.size[results.sizes - 1];
    arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) {
        fprintf(stderr, "wheel_bench: no memory for %zu bytes of objects: %s\n", size, strerror(errno));
        exit(1);
    }
    madvise(arena, size, options.huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* ---- options --------------------------------------------------------------------------------------------- */

static void fail(const char *what, const char *value)
{
    fprintf(stderr, "wheel_bench: %s '%s'\n%s", what, value, usage);
    exit(2);
}

static int compare_sizes(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Parses numbers like 1000 or 1e6. The size 1 is always there. */
static void parse_sizes(const char *text)
{
    results.sizes = 1;
    while (*text != '\0') {
        char *end;
        double n = strtod(text, &end);
        if (end == text || n < 1000 || n > 100000000 || results.sizes == SIZES_MAX)
            fail("--sizes: expected up to seven numbers from 1000 to 1e8, not", text);
        results.size[results.sizes++] = (uint32_t)n;
        text = *end == ',' ? end + 1 : end;
    }
    qsort(results.size, (size_t)results.sizes, sizeof results.size[0], compare_sizes);
}

static int parse_rounds(const char *text)
{
    int rounds = atoi(text);
    if (rounds < 1 || rounds > ROUNDS_MAX)
        fail("--rounds: expected 1 to 16, not", text);
    return rounds;
}

static void list_names(void)
{
    for (int w = 0; w < WORKLOADS; w++)
        printf("workload\t%s\t%s\n", workload_names[w], workload_texts[w]);
    for (size_t e = 0; e < bench_engine_count; e++)
        printf("engine\t%s\t%zu bytes an object\n", bench_engines[e]->name, bench_engines[e]->object_size);
    exit(0);
}

static void parse_flag(const char *flag)
{
    if (strcmp(flag, "--quick") == 0) {
        options.quick = true;
        results.sizes = results.sizes == 5 ? 4 : results.sizes;
    } else if (strcmp(flag, "--huge-pages") == 0) {
        options.huge_pages = true;
    } else if (strcmp(flag, "--list") == 0) {
        list_names();
    } else if (strcmp(flag, "--build") == 0) {
        printf("compiler: %s\nflags: %s\n", __VERSION__, BENCH_FLAGS);
        exit(0);
    } else if (strcmp(flag, "--help") == 0) {
        fputs(usage, stdout);
        exit(0);
    } else {
        fail("unknown option", flag);
    }
}

/* Whether the option takes a value. If it does, the value has been stored. */
static bool parse_value(const char *option, const char *value)
{
    if (strcmp(option, "--out") == 0)
        options.out = value;
    else if (strcmp(option, "--workload") == 0)
        options.workloads = value;
    else if (strcmp(option, "--engine") == 0)
        options.engines = value;
    else if (strcmp(option, "--merge") == 0)
        options.merge = value;
    else if (strcmp(option, "--sizes") == 0)
        parse_sizes(value);
    else if (strcmp(option, "--rounds") == 0)
        options.rounds = parse_rounds(value);
    else
        return false;
    return true;
}

static void parse_options(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        if (i + 1 < count && parse_value(words[i], words[i + 1]))
            i++;
        else
            parse_flag(words[i]);
    }
}

static bool known_name(const char *name, size_t length, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(known[i]) == length && strncmp(known[i], name, length) == 0)
            return true;
    return false;
}

/* Every name of a comma-separated list must be one that --list shows. */
static void check_list(const char *option, const char *list, const char *const *known, size_t count)
{
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        if (!known_name(list, length, known, count)) {
            fprintf(stderr, "wheel_bench: %s: expected names that --list shows, not '%.*s'\n", option,
                    (int)length, list);
            exit(2);
        }
        list += list[length] == ',' ? length + 1 : length;
    }
}

static void name_engines(void)
{
    for (size_t e = 0; e < bench_engine_count; e++) {
        results.engine[e] = bench_engines[e]->name;
        results.kind[e] = bench_engines[e]->kind;
    }
    results.engines = (int)bench_engine_count;
}

int main(int count, char **words)
{
    /* malloc keeps freed memory, so that no engine pays for the page faults of another. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    parse_options(count, words);
    name_engines();
    check_list("--workload", options.workloads, workload_names, WORKLOADS);
    check_list("--engine", options.engines, results.engine, bench_engine_count);
    make_arena();
    int rounds = run_rounds();
    if (options.merge != NULL)
        results_merge(&results, options.merge);
    report_tables(&results, stdout);
    report_targets(&results, rounds, stdout);
    printf("\n%d rounds, %.0f s\n", rounds, (double)(bench_real_ns() - began_ns) / 1e9);
    if (options.out != NULL)
        report_files(&results, options.out);
    return 0;
}
