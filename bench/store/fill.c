/* SPDX-License-Identifier: MIT
 *
 * Tasks with random due times, and files that are full of them.
 */
#include "loads.h"
#include "raw.h"
#include "tools.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEP = 100000 }; /* rows of a transaction */
static const uint64_t day_ms = 24 * 3600 * 1000;

/* splitmix64, as ../random.h, whose state is one for the whole program */
uint64_t draw(struct run *run, uint64_t n)
{
    uint64_t x = run->random += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return (x ^ x >> 31) % n;
}

void name_row(struct row *row, size_t number)
{
    row->id_size = (size_t)snprintf(row->id, sizeof row->id, "order:%zu", number);
}

/* Due from tomorrow on, so that none of them comes while the benchmark runs. */
struct row *make_rows(struct run *run, size_t first, size_t n)
{
    struct row *rows = need(n, sizeof *rows);
    uint64_t from_ms = wall_us() / 1000 + day_ms;
    for (size_t i = 0; i < n; i++) {
        name_row(&rows[i], first + i);
        rows[i].due_ms = from_ms + draw(run, DAYS * day_ms);
    }
    return rows;
}

/* The rows of a step are due in a random order, and the steps one after the other. So the file of ten million
 * tasks is made in minutes. */
static void spread(struct row *rows, size_t n, uint64_t from_ms, uint64_t width_ms, struct run *run)
{
    for (size_t i = 0; i < n; i++)
        rows[i].due_ms = from_ms + draw(run, width_ms);
}

static void fill_from(struct run *run, uint64_t from_ms)
{
    remove_store(run->path);
    struct raw *raw = raw_open(run->path);
    raw_run(raw, "PRAGMA synchronous=OFF; PRAGMA cache_size=-262144");
    for (size_t i = 0; i < run->n; i += STEP) {
        size_t n = run->n - i < STEP ? run->n - i : STEP;
        struct row *rows = make_rows(run, i, n);
        uint64_t width_ms = DAYS * day_ms * n / run->n;
        spread(rows, n, from_ms, width_ms > 0 ? width_ms : 1, run);
        raw_put(raw, rows, n);
        from_ms += width_ms;
        free(rows);
    }
    sqlite3_int64 revision = raw->revision;
    char sql[96];
    snprintf(sql, sizeof sql, "UPDATE tw_meta SET revision = %lld", revision);
    raw_run(raw, sql);
    raw_run(raw, "PRAGMA wal_checkpoint(TRUNCATE)");
    raw_close(raw);
}

void fill(struct run *run)
{
    fill_from(run, wall_us() / 1000 + day_ms);
}

void fill_now(struct run *run)
{
    fill_from(run, wall_us() / 1000);
}
