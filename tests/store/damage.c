/* SPDX-License-Identifier: MIT */
#include "damage.h"

#include <sqlite3.h>
#include <string.h>

enum { PAGE = 4096, LOG_HEADER = 32, FRAME_HEADER = 24, FRAME = FRAME_HEADER + PAGE };

uint64_t damage_take(struct input *input, unsigned n)
{
    uint64_t value = 0;
    for (; n > 0 && input->left > 0; n--, input->left--)
        value = value << 8 | *input->at++;
    return value;
}

/* ---- bytes and pages ------------------------------------------------------------------------------------- */

/* Big-endian numbers of a log, and its checksum (sqlite.org/fileformat2.html, section 4.2). */
static uint32_t get_number(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void set_number(unsigned char *at, uint32_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

static void add_sum(uint32_t *sum, const unsigned char *at, size_t size, bool big)
{
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint32_t one = get_number(at + i), two = get_number(at + i + 4);
        sum[0] += (big ? one : __builtin_bswap32(one)) + sum[1];
        sum[1] += (big ? two : __builtin_bswap32(two)) + sum[0];
    }
}

void damage_seal(struct bytes *log)
{
    uint32_t sum[2] = {0, 0};
    if (log->size < LOG_HEADER)
        return;
    bool big = (log->at[3] & 1) != 0;
    add_sum(sum, log->at, LOG_HEADER - 8, big);
    set_number(log->at + LOG_HEADER - 8, sum[0]);
    set_number(log->at + LOG_HEADER - 4, sum[1]);
    for (unsigned char *frame = log->at + LOG_HEADER; frame + FRAME <= log->at + log->size; frame += FRAME) {
        add_sum(sum, frame, 8, big);
        add_sum(sum, frame + FRAME_HEADER, PAGE, big);
        set_number(frame + 16, sum[0]);
        set_number(frame + 20, sum[1]);
    }
}

/* The place of a page's bytes in the file, or in the log. */
static size_t draw_page(struct input *input, const struct bytes *bytes, bool is_log)
{
    size_t header = is_log ? LOG_HEADER + FRAME_HEADER : 0, each = is_log ? FRAME : PAGE;
    size_t pages = bytes->size > header ? (bytes->size - header) / each : 0;
    return header + (pages > 0 ? (size_t)damage_take(input, 1) % pages * each : 0);
}

void damage_bytes(struct input *input, struct bytes *bytes, bool is_log)
{
    uint64_t kind = damage_take(input, 1) % 6;
    size_t page = draw_page(input, bytes, is_log), offset, other;
    if (bytes->size < PAGE + FRAME_HEADER + LOG_HEADER || page + PAGE > bytes->size)
        return;
    switch (kind) {
    case 0: /* a byte anywhere */
        offset = (size_t)damage_take(input, 3) % bytes->size;
        bytes->at[offset] = (unsigned char)damage_take(input, 1);
        break;
    case 1: /* the head of a page: its kind, its cells, its freed bytes */
        offset = page + (size_t)damage_take(input, 1) % 48;
        bytes->at[offset] = (unsigned char)damage_take(input, 1);
        break;
    case 2: /* a few bytes of a page's cells */
        offset = page + (size_t)damage_take(input, 2) % (PAGE - 4);
        set_number(bytes->at + offset, (uint32_t)damage_take(input, 4));
        break;
    case 3: /* a bit */
        offset = page + (size_t)damage_take(input, 2) % PAGE;
        bytes->at[offset] ^= (unsigned char)(1 << damage_take(input, 1) % 8);
        break;
    case 4: /* a page twice */
        other = draw_page(input, bytes, is_log);
        if (other + PAGE <= bytes->size)
            memmove(bytes->at + page, bytes->at + other, PAGE);
        break;
    default: /* the end is missing */
        bytes->size -= (size_t)damage_take(input, 2) % bytes->size;
    }
}

/* ---- values ---------------------------------------------------------------------------------------------- */

/* Opens the file as another program that checks nothing. */
static sqlite3 *open_careless(const char *path)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) == SQLITE_OK)
        sqlite3_exec(db,
                     "PRAGMA ignore_check_constraints=ON; PRAGMA writable_schema=ON; PRAGMA synchronous=OFF",
                     NULL, NULL, NULL);
    return db;
}

/* Draws a damage, and writes it. Returns whether the connection has to read the schema anew. */
static bool damage_table(struct input *input, sqlite3 *db)
{
    static const char *const columns[] = {
        "revision",       "queue",       "id",       "due_ms",     "next_ms",        "place_ms",
        "attempt",        "lapses",      "run",      "token",      "dead_ms",        "every_ms",
        "times",          "missed",      "tries",    "backoff_ms", "error",          "payload",
        "missed_periods", "max_late_ms", "replaced", "factor",     "backoff_max_ms", "jitter"};
    static const char *const values[] = {"NULL",
                                         "-1",
                                         "0",
                                         "0.5",
                                         "'x'",
                                         "x'00'",
                                         "''",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "1e300",
                                         "x''",
                                         "4611686018427387903",
                                         "char(0) || 'q'",
                                         "hex(zeroblob(300))",
                                         "zeroblob(100000)",
                                         "253402300799999"};
    static const char *const wholes[] = {
        "DELETE FROM tw_meta",
        "UPDATE tw_meta SET run = run + 1",
        "UPDATE tw_meta SET revision = 4611686018427387904",
        "UPDATE tw_meta SET revision = -5, run = -5, changes = -5, restored = -5",
        "UPDATE tw_meta SET revision = 'x', run = x'00', changes = 'x'",
        "INSERT INTO tw_meta VALUES (-7, x'00', 5, 7, 'x', 9, 'y', 'z', 0, -1, 'x', NULL, 1e300),"
        " (7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7)",
        "INSERT INTO tw_lease SELECT queue, id, 5, 5, 5, 'x', 'x' FROM tw_task",
        "INSERT INTO tw_lease SELECT queue, id, 5, 'x', x'00', 5, 5 FROM tw_task;"
        " UPDATE tw_task SET replaced = -1",
        "UPDATE tw_meta SET tries = 0, backoff_ms = 'x', factor = 1e300, backoff_max_ms = -1, jitter = 101",
        "DROP TABLE tw_queue",
        "DROP TABLE tw_task",
        "DROP INDEX tw_order",
        "DROP INDEX tw_dead; DROP INDEX tw_repeat",
        "DROP VIEW tw_put; CREATE VIEW tw_put AS SELECT 1",
        "ALTER TABLE tw_task RENAME COLUMN payload TO load",
        "ALTER TABLE tw_task ADD COLUMN note DEFAULT 5",
        "DROP TABLE tw_task; CREATE VIEW tw_task AS SELECT 1 AS revision, 'q' AS queue",
        "CREATE TRIGGER no_change BEFORE UPDATE ON tw_task BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER no_end BEFORE DELETE ON tw_task BEGIN SELECT RAISE(IGNORE); END",
        "INSERT INTO tw_queue VALUES (x'00ff', 1), ('', 5), (char(0), 'x'), (3, -1)",
        "INSERT OR REPLACE INTO tw_queue VALUES ('q', x'01'), ('other', 0)",
        "PRAGMA journal_mode=DELETE",
        "UPDATE sqlite_schema SET sql = NULL WHERE name = 'tw_order'",
        "UPDATE sqlite_schema SET rootpage = 3 WHERE name LIKE 'tw_d%'",
        "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'tw_task'",
        "DELETE FROM sqlite_schema WHERE name = 'tw_task'",
        "UPDATE tw_task SET dead_ms = 7; UPDATE tw_task SET queue = 'q' || revision",
    };
    char sql[300];
    uint64_t kind = damage_take(input, 1);
    sqlite3_snprintf(sizeof sql, sql, "UPDATE OR IGNORE tw_task SET %s = %s WHERE revision %% %d = %d",
                     columns[damage_take(input, 1) % (sizeof columns / sizeof columns[0])],
                     values[damage_take(input, 1) % 16], (int)(1 + damage_take(input, 1) % 9),
                     (int)(damage_take(input, 1) % 3));
    const char *one = kind < 208 ? sql : wholes[kind % (sizeof wholes / sizeof wholes[0])];
    sqlite3_exec(db, one, NULL, NULL, NULL);
    return strstr(one, "sqlite_schema") != NULL;
}

/* Values that the checks of the schema refuse get past them. */
void damage_tables(struct input *input, const char *path, int most)
{
    sqlite3 *db = NULL;
    for (int i = 0; i < most && input->left > 0; i++) {
        if (db == NULL)
            db = open_careless(path);
        if (damage_table(input, db)) {
            sqlite3_close(db);
            db = NULL;
        }
    }
    sqlite3_close(db);
}
