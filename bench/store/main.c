/* SPDX-License-Identifier: MIT
 *
 * store_bench SIDE LOAD N SEED PATH: runs one load on one side, once, and prints a line `metric value` for each
 * figure. N is a number of tasks. PATH is the file, or the folder of a server.
 *
 *   store_bench raw fill N SEED PATH     makes a file of N tasks for the loads change, late and idle
 *   store_bench raw fill_now N SEED PATH makes one for the load pending, due from now on
 *   store_bench raw disk N SEED PATH     times N syncs of a file, each after 4 KiB
 *   store_bench --build                  prints compiler and flags
 *
 * docs/benchmark-store.md describes the loads.
 */
#include "loads.h"
#include "tools.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_MAX = 100000000, SEED_MAX = 1000000, BLOCK = 4096 };

const char payload[PAYLOAD] = "{\"order\": 42, \"customer\": 7, \"total\": 1999, \"currency\": \"EUR\", "
                              "\"mail\": \"customer@example.com\"}";

/* What the disk itself takes: each other figure contains it. */
static void load_disk(struct run *run)
{
    static const char block[BLOCK];
    uint64_t *us = need(run->n, sizeof *us);
    int fd = open(run->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    settle();
    for (size_t i = 0; i < run->n; i++) {
        uint64_t begun_ns = now_ns();
        if (write(fd, block, sizeof block) != BLOCK || fdatasync(fd) != 0)
            fail("%s: cannot be written", run->path);
        us[i] = (now_ns() - begun_ns) / 1000;
    }
    close(fd);
    unlink(run->path);
    print_spread("sync", us, run->n);
    free(us);
}

static const struct {
    const char *name;
    void (*run)(struct run *run);
} loads[] = {
    {"disk", load_disk},           {"fill", fill},
    {"fill_now", fill_now},        {"put_one", load_put_one},
    {"put_batch", load_put_batch}, {"put_64", load_put_64},
    {"change", load_change},       {"due", load_due},
    {"late", load_late},           {"pending", load_pending},
    {"idle", load_idle},           {"notice", load_notice},
    {"unrelated", load_unrelated}, {"queues", load_queues},
    {"queues_1m", load_queues},
};

static uint64_t number(const char *name, const char *word, uint64_t most)
{
    char *end;
    unsigned long long value = strtoull(word, &end, 10);
    if (*end == '\0' && value >= 1 && value <= most)
        return value;
    fprintf(stderr, "store_bench: %s is '%s': expected 1 to %llu\n", name, word, (unsigned long long)most);
    exit(2);
}

static int usage(void)
{
    fputs("usage: store_bench SIDE LOAD N SEED PATH\nloads:", stderr);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        fprintf(stderr, " %s", loads[i].name);
    fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--build") == 0) {
        printf("compiler: gcc %s\nflags: %s\nsqlite: %s\n", __VERSION__, BENCH_FLAGS, sqlite3_libversion());
        return 0;
    }
    if (argc != 6)
        return usage();
    struct run run = {.side = argv[1],
                      .path = argv[5],
                      .n = number("N", argv[3], N_MAX),
                      .random = number("SEED", argv[4], SEED_MAX)};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        if (strcmp(loads[i].name, argv[2]) == 0) {
            loads[i].run(&run);
            return 0;
        }
    }
    return usage();
}
