/* SPDX-License-Identifier: MIT
 *
 * The table of a shard's keys: it finds the tasks whose keys have a given hash, and grows a little at a time.
 *
 *     tag:  32 bits of a key's SipHash     [ directory | ............ | cell in the segment ]
 *
 *     directory  [ 0 | 1 | 2 | 3 ]         segment: 4,096 cells of 8 bytes: tag, index of the task
 *                  |   |    \ /                     in 512 buckets of one cache line
 *                  A   B     C             C is half as deep: two entries name it
 *
 * Searching. The first bits of the tag choose a directory entry, which names a segment. The last twelve bits,
 * without the last three, choose the first cell of a bucket. From there the search walks through the cells
 * (linear probing) until it meets an empty cell. A bucket has room for eight keys and is the home of six at
 * the most, on average, so nearly every search ends in the cache line in which it began.
 *
 * Example: the tag is 0xC0001015. Its first two bits are 11, so entry 3 names the segment, C. Its last twelve
 * bits are 0x015, 21. So the search begins at cell 16 of C, the first cell of bucket 2.
 *
 * Growing. A segment that is three quarters full is split in two by the next bit of the tags. That touches
 * 4,096 cells that lie together and takes tens of microseconds, however many keys the table has. If only one
 * entry names the segment, the directory doubles first. This is extendible hashing (Fagin, Nievergelt,
 * Pippenger, Strong, 1979). In the example C has 3,072 keys when one more comes. Tags that begin with 10 stay
 * in C, tags that begin with 11 move to a new segment D, and entry 3 now names D. The directory need not
 * double, as two entries named C.
 *
 * Fetching ahead. A caller fetches the line of a tag before it takes the lock, so that the line arrives while
 * the caller reads the clock and waits for the lock. Meanwhile another thread may split the segment or double
 * the directory. Then the wrong line arrives, which costs only time: segments and directories are not freed
 * before the end of the table. All old directories together are smaller than the present one: at a million
 * keys, 512 entries and 4 KiB.
 *
 * Removing. The cells that follow shift back, so that removed keys leave nothing behind (Knuth, volume 3,
 * 6.4, algorithm R). A segment never fills: at least one cell stays empty, and there a search ends.
 *
 * A tag and an index are enough to split and to remove, so neither looks at a task or a key. The addresses of
 * both follow from the index: see pool.c.
 *
 * The cell of a key stays in the table until the key's task has ended. That is S2 for keys.
 *
 * Rejected: uthash, which was here before. It grows all at once, under the lock: 131 ms at 1.2 million keys,
 * and no task fires in that time. It also follows four or five links to find a key, where this table looks at
 * one cell.
 */
#include "table.h"

#include "memory.h"

#include <string.h>

enum {
    SEGMENT_SHIFT = 12,
    SEGMENT = 1 << SEGMENT_SHIFT, /* cells */
    BUCKET = 8,                   /* cells in a cache line */
    SPLIT_AT = SEGMENT / 4 * 3,   /* a segment with this many keys is split, if it can be, before an add */
    DEPTH_MAX = 32 - SEGMENT_SHIFT
};

/* A cell of the table. There is one cell for each key. */
struct cell {
    uint32_t tag;
    uint32_t place; /* the index of the task, plus 1; 0: the cell is empty */
};

struct tw__sched_segment {
    uint32_t depth; /* all tags in the segment agree in this many first bits */
    uint32_t used;
    _Alignas(TW__SCHED_LINE) struct cell cell[SEGMENT];
};

/* The entries change under the lock. tw__sched_table_prefetch() reads them without it, so they are atomic. */
struct tw__sched_directory {
    struct tw__sched_directory *older; /* half as large; a thread without the lock may still read it */
    uint32_t depth;
    _Atomic(struct tw__sched_segment *) entry[]; /* 2^depth */
};

static size_t directory_size(uint32_t depth)
{
    return sizeof(struct tw__sched_directory) + (sizeof(void *) << depth);
}

static struct tw__sched_directory *directory_of(const struct tw__sched_table *table)
{
    return atomic_load_explicit(&table->directory, memory_order_acquire);
}

static struct tw__sched_segment *directory_entry(const struct tw__sched_directory *directory, size_t i)
{
    return atomic_load_explicit(&directory->entry[i], memory_order_acquire);
}

static void set_entry(struct tw__sched_directory *directory, size_t i, struct tw__sched_segment *segment)
{
    atomic_store_explicit(&directory->entry[i], segment, memory_order_release);
}

/* The first `bits` bits of a tag. */
static uint32_t prefix(uint32_t tag, uint32_t bits)
{
    return (uint32_t)((uint64_t)tag << bits >> 32);
}

/* The segment of a tag. NULL: the table is empty. */
static struct tw__sched_segment *segment_of(const struct tw__sched_table *table, uint32_t tag)
{
    const struct tw__sched_directory *directory = directory_of(table);
    return directory == NULL ? NULL : directory_entry(directory, prefix(tag, directory->depth));
}

static uint32_t home_of(uint32_t tag)
{
    return tag & (SEGMENT - BUCKET);
}

static uint32_t after(uint32_t at)
{
    return (at + 1) & (SEGMENT - 1);
}

/* ---- searching ------------------------------------------------------------------------------------------- */

struct tw__sched_probe tw__sched_table_probe(const struct tw__sched_table *table, uint32_t tag)
{
    return (struct tw__sched_probe){segment_of(table, tag), tag, home_of(tag)};
}

void tw__sched_table_prefetch(const struct tw__sched_table *table, uint32_t tag)
{
    const struct tw__sched_segment *segment = segment_of(table, tag);
    if (segment != NULL)
        __builtin_prefetch(&segment->cell[home_of(tag)], 1);
}

uint32_t tw__sched_probe_next(struct tw__sched_probe *probe)
{
    if (probe->segment == NULL)
        return TW__SCHED_NONE;
    for (;;) {
        const struct cell *cell = &probe->segment->cell[probe->at];
        if (cell->place == 0)
            return TW__SCHED_NONE;
        probe->at = after(probe->at);
        if (cell->tag == probe->tag)
            return cell->place - 1;
    }
}

/* ---- one segment ----------------------------------------------------------------------------------------- */

static void put_cell(struct tw__sched_segment *segment, const struct cell *cell)
{
    uint32_t at = home_of(cell->tag);
    while (segment->cell[at].place != 0)
        at = after(at);
    segment->cell[at] = *cell;
    segment->used++;
}

/* Whether the cell at `at` may move back to the hole: its home must not lie after the hole on the way to
 * `at`. */
static bool may_fill(const struct tw__sched_segment *segment, uint32_t hole, uint32_t at)
{
    uint32_t home = home_of(segment->cell[at].tag);
    return ((at - home) & (SEGMENT - 1)) >= ((at - hole) & (SEGMENT - 1));
}

/* Empties a cell, and fills the hole with the cells that follow it, so that every search still finds them. */
static void take_cell(struct tw__sched_segment *segment, uint32_t hole)
{
    for (uint32_t at = after(hole); segment->cell[at].place != 0; at = after(at)) {
        if (!may_fill(segment, hole, at))
            continue;
        segment->cell[hole] = segment->cell[at];
        hole = at;
    }
    segment->cell[hole].place = 0;
    segment->used--;
}

static struct tw__sched_segment *new_segment(struct tw__sched_shard *shard, uint32_t depth)
{
    struct tw__sched_segment *segment = tw__sched_alloc_lines(shard->sched, sizeof *segment);
    if (segment == NULL)
        return NULL;
    memset(segment, 0, sizeof *segment);
    segment->depth = depth;
    return segment;
}

/* ---- growing --------------------------------------------------------------------------------------------- */

/* Makes a directory, which is not yet that of the table. NULL: no memory. */
static struct tw__sched_directory *new_directory(struct tw__sched_shard *shard, uint32_t depth)
{
    struct tw__sched_directory *directory = tw__sched_alloc(shard->sched, directory_size(depth));
    if (directory == NULL)
        return NULL;
    directory->older = directory_of(&shard->table);
    directory->depth = depth;
    return directory;
}

static void publish(struct tw__sched_shard *shard, struct tw__sched_directory *directory)
{
    atomic_store_explicit(&shard->table.directory, directory, memory_order_release);
}

/* Makes the first directory of a table: one entry, one segment. Returns false if there is no memory. */
static bool begin(struct tw__sched_shard *shard)
{
    struct tw__sched_segment *segment = new_segment(shard, 0);
    if (segment == NULL)
        return false;
    struct tw__sched_directory *directory = new_directory(shard, 0);
    if (directory == NULL) {
        tw__sched_dealloc_lines(shard->sched, segment, sizeof *segment);
        return false;
    }
    atomic_init(&directory->entry[0], segment);
    publish(shard, directory);
    return true;
}

static bool double_directory(struct tw__sched_shard *shard)
{
    const struct tw__sched_directory *from = directory_of(&shard->table);
    struct tw__sched_directory *twice = new_directory(shard, from->depth + 1);
    if (twice == NULL)
        return false;
    for (size_t i = 0; i < (size_t)1 << twice->depth; i++)
        atomic_init(&twice->entry[i], directory_entry(from, i / 2));
    publish(shard, twice);
    return true;
}

/* Moves the cells whose tag has the next bit set. If another cell shifts back into the place that was just
 * emptied, the inner loop looks at that place again. */
static void divide_segment(struct tw__sched_segment *from, struct tw__sched_segment *to)
{
    uint32_t bit = UINT32_C(1) << (32 - to->depth);
    for (uint32_t at = 0; at < SEGMENT; at++)
        while (from->cell[at].place != 0 && (from->cell[at].tag & bit) != 0) {
            put_cell(to, &from->cell[at]);
            take_cell(from, at);
        }
}

/* Splits the segment of a tag. Returns false if there is no memory, or no further bit to split by. */
static bool split_segment(struct tw__sched_shard *shard, uint32_t tag)
{
    struct tw__sched_table *table = &shard->table;
    struct tw__sched_segment *from = segment_of(table, tag);
    if (from->depth == DEPTH_MAX || (from->depth == directory_of(table)->depth && !double_directory(shard)))
        return false;
    struct tw__sched_segment *to = new_segment(shard, from->depth + 1);
    if (to == NULL)
        return false;
    from->depth++;
    divide_segment(from, to);
    struct tw__sched_directory *directory = directory_of(table);
    uint32_t named = UINT32_C(1) << (directory->depth - to->depth); /* entries of each half */
    uint32_t first = (prefix(tag, to->depth) | 1) * named;
    for (uint32_t i = 0; i < named; i++)
        set_entry(directory, first + i, to);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

bool tw__sched_table_add(struct tw__sched_shard *shard, uint32_t tag, uint32_t index)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_table *table = &shard->table;
    if (directory_of(table) == NULL && !begin(shard))
        return false;
    while (segment_of(table, tag)->used >= SPLIT_AT && split_segment(shard, tag))
        ;
    struct tw__sched_segment *segment = segment_of(table, tag);
    if (segment->used == SEGMENT - 1)
        return false;
    put_cell(segment, &(struct cell){tag, index + 1});
    return true;
}

void tw__sched_table_remove(struct tw__sched_shard *shard, uint32_t tag, uint32_t index)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_segment *segment = segment_of(&shard->table, tag);
    uint32_t at = home_of(tag);
    while (segment->cell[at].place != index + 1)
        at = after(at);
    take_cell(segment, at);
}

void tw__sched_table_visit(const struct tw__sched_table *table, void visit(void *arg, uint32_t tag), void *arg)
{
    const struct tw__sched_directory *directory = directory_of(table);
    for (size_t i = 0; directory != NULL && i < (size_t)1 << directory->depth;) {
        const struct tw__sched_segment *segment = directory_entry(directory, i);
        i += (size_t)1 << (directory->depth - segment->depth);
        for (uint32_t at = 0; at < SEGMENT; at++)
            if (segment->cell[at].place != 0)
                visit(arg, segment->cell[at].tag);
    }
}

/* Frees the segments of a directory. */
static void free_segments(struct tw__sched_shard *shard, const struct tw__sched_directory *directory)
{
    for (size_t i = 0; i < (size_t)1 << directory->depth;) {
        struct tw__sched_segment *segment = directory_entry(directory, i);
        i += (size_t)1 << (directory->depth - segment->depth);
        tw__sched_dealloc_lines(shard->sched, segment, sizeof *segment);
    }
}

void tw__sched_table_end(struct tw__sched_shard *shard)
{
    struct tw__sched_directory *directory = directory_of(&shard->table), *older;
    if (directory != NULL)
        free_segments(shard, directory);
    for (; directory != NULL; directory = older) {
        older = directory->older;
        tw__sched_dealloc(shard->sched, directory, directory_size(directory->depth));
    }
}
