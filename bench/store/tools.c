/* SPDX-License-Identifier: MIT */
#include "tools.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_US = 1000, US_PER_S = 1000000 };

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("store_bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *need(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (block == NULL)
        fail("no memory");
    return block;
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

void print(const char *metric, double value)
{
    printf("%s\t%.6g\n", metric, value);
    fflush(stdout);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void print_spread(const char *name, uint64_t *values, size_t n)
{
    static const struct {
        const char *name;
        size_t percent;
    } parts[] = {{"p50", 50}, {"p99", 99}, {"max", 100}};
    qsort(values, n, sizeof *values, compare);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char metric[64];
        size_t at = n * parts[i].percent / 100;
        snprintf(metric, sizeof metric, "%s_%s_us", name, parts[i].name);
        print(metric, (double)values[at < n ? at : n - 1]);
    }
}

void print_memory(const char *metric, const char *name)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    if (file != NULL)
        fclose(file);
    if (kib == 0)
        fail("/proc/self/status has no %s", name);
    print(metric, (double)kib * 1024);
}

void settle(void)
{
    sync();
}

void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-tickwheel"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}
