/* SPDX-License-Identifier: MIT
 *
 * One side of the lateness table, in its own process: late_bench SIDE PENDING PROBES [FILE]. `measure` leads
 * it, and a word on the standard input begins each step (measure names the steps). The probes are due one each
 * 20 ms, at a random microsecond of these 20 ms, or at a random millisecond if the side takes no finer times.
 * At the end it prints for each probe the microseconds from its due time to the beginning of its handler.
 */
#include "side.h"
#include "../random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVERY_US = 20 * US_PER_MS, AHEAD_US = 1000 * US_PER_MS, PATIENCE_US = 120000 * US_PER_MS };
enum { HOUR_MS = 3600000, PENDING_MS = 15 * 24 * HOUR_MS, LOOK_MS = 10, WORD = 16 };

static const struct side *const sides[] = {&sched_side, &store_side, &libuv_side};

/* The calls so far. A handler takes its place in the list, and then counts. */
static struct {
    int64_t *late_us;
    size_t most;
    atomic_size_t begun, noted;
} calls;

void fail(const char *words)
{
    fprintf(stderr, "late_bench: %s\n", words);
    exit(1);
}

void *need(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size);
    if (memory == NULL)
        fail("no memory");
    return memory;
}

uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static uint64_t wall_us(void)
{
    return wall_ns() / NS_PER_US;
}

uint64_t until_ns(uint64_t due_us)
{
    uint64_t now_ns = wall_ns(), due_ns = due_us * NS_PER_US;
    return due_ns > now_ns ? due_ns - now_ns : 0;
}

void called(uint64_t due_us)
{
    int64_t late_us = (int64_t)wall_us() - (int64_t)due_us;
    size_t place = atomic_fetch_add(&calls.begun, 1);
    if (place >= calls.most)
        fail("more calls than probes");
    calls.late_us[place] = late_us;
    atomic_fetch_add(&calls.noted, 1);
}

/* Says that the last step is done, and waits for the word that begins the next, or for the other word, if
 * there is one. Returns whether it is `next`. */
static bool step(const char *done, const char *next, const char *other)
{
    char word[WORD];
    printf("%s\n", done);
    fflush(stdout);
    if (fgets(word, sizeof word, stdin) == NULL)
        fail("the measuring program has gone");
    word[strcspn(word, "\n")] = '\0';
    bool is_next = strcmp(word, next) == 0;
    if (!is_next && (other == NULL || strcmp(word, other) != 0))
        fail("the measuring program has said another word");
    return is_next;
}

static void file_pending(const struct side *side, size_t n)
{
    uint64_t *due_us = need(n, sizeof *due_us), from_ms = wall_us() / US_PER_MS + HOUR_MS;
    for (size_t i = 0; i < n; i++)
        due_us[i] = (from_ms + random_below(PENDING_MS)) * US_PER_MS;
    side->file(due_us, n);
    free(due_us);
}

static void file_probes(const struct side *side, size_t n)
{
    uint64_t *due_us = need(n, sizeof *due_us), unit = side->unit_us;
    uint64_t from_us = (wall_us() + AHEAD_US) / unit * unit;
    for (size_t i = 0; i < n; i++)
        due_us[i] = from_us + i * EVERY_US + random_below(EVERY_US / unit) * unit;
    side->file(due_us, n);
    uint64_t end_us = due_us[n - 1] + PATIENCE_US;
    while (atomic_load(&calls.noted) < n) {
        if (wall_us() > end_us)
            fail("some probes were not called within two minutes");
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * NS_PER_MS}, NULL);
    }
    free(due_us);
}

/* The steps from the start of the work on. */
static void work(const struct side *side, size_t probes)
{
    side->start();
    step("idle", "probe", NULL);
    file_probes(side, probes);
    side->close();
    for (size_t i = 0; i < probes; i++)
        printf("late %lld\n", (long long)calls.late_us[i]);
    step("done", "end", NULL);
}

int main(int argc, char **argv)
{
    const struct side *side = NULL;
    for (size_t i = 0; argc >= 4 && i < sizeof sides / sizeof *sides; i++)
        if (strcmp(argv[1], sides[i]->name) == 0)
            side = sides[i];
    if (argc == 2 && strcmp(argv[1], "--build") == 0) {
        printf("compiler: gcc %s\nflags: %s\n", __VERSION__, BENCH_FLAGS);
        return 0;
    }
    if (side == NULL) {
        fprintf(stderr, "usage: late_bench sched|store|libuv PENDING PROBES [FILE]\n");
        return 2;
    }
    size_t pending = strtoull(argv[2], NULL, 10), probes = strtoull(argv[3], NULL, 10);
    calls.late_us = need(probes, sizeof *calls.late_us);
    calls.most = probes;
    side->open(argc > 4 ? argv[4] : NULL);
    bool works = !step("empty", "fill", "work");
    if (!works) {
        file_pending(side, pending);
        works = step("filled", "work", "end");
    }
    if (works)
        work(side, probes);
    else
        side->close();
    return 0;
}
