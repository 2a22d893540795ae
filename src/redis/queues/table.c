/* SPDX-License-Identifier: MIT
 *
 * The ids of a queue: a hash table for one task or for ten million.
 *
 *     hash:   [ 63 .. 52 | ........ | 4 bits for splits to come | low bits: which segment ]
 *
 *     directory  [ 0 | 1 | 2 | 3 | 4 ]        segment: cells in the order of their tags, without gaps
 *                  |   |   |   |   |
 *                  |   ...                    cell:   [ tag, 16 bits | address of the entry, 48 bits ]
 *                  v                          tag:     [ top 12 bits of the hash | the 4 bits for splits ]
 *                  [ 0071.. | 03a2.. | 9f10.. | e4c8.. ]
 *
 * Linear hashing (Litwin, 1980): whenever there are more than GROW_AT entries for each segment, the table
 * grows by splitting one segment in two, in a fixed order. It shrinks by joining the last segment with the
 * segment that it was split from. So no insertion costs more than a split, which takes microseconds, and of
 * the directory only the first chunk is copied.
 *
 * Hashes are spread evenly, so a tag tells roughly where in its segment it lies. A search begins there
 * (interpolation) and ends a few cells away. Example: in a segment of 100 cells the search for tag 0x8000
 * begins at cell 50. Nearly always one cell has the tag, and its entry is the right one.
 *
 * The table is small because cells have no gaps. An entry takes 8 bytes, plus its share of the bytes by which
 * the allocator rounds up, and about 128 entries share 16 bytes more. A table of one entry takes one small
 * block.
 *
 * A split needs one more bit of each hash. The tag holds the next four bits, so that only every fourth
 * doubling has to look at the entries and hash their ids again. Such a split prefetches all its entries
 * first, because a cache miss for each entry in turn would be its main cost. A join never looks at entries:
 * the bits that it brings back into the tags are the bits of the segments' numbers.
 *
 * A cursor of tw__redis_table_scan is a position in the order of the hashes read backwards, lowest bit first.
 * The cursor itself is written backwards too. In that order a segment is an interval, and a split or a join
 * only makes or removes borders. So everything before the cursor has been visited, even if the table has grown
 * or shrunk since.
 *
 * T1  An entry is in the segment that the low bits of its hash name, once.
 * T2  The tag beside the address of an entry is the tag of its hash, at the depth of its segment.
 * T3  The cells of a segment are in the order of their tags.
 * T4  A segment has room for its cells. A segment without cells has no memory.
 * T5  The directory has room for its segments, and no chunk more than they need.
 * T6  `count` is the number of cells. `bytes` is the size of all blocks, as the allocator reports it.
 *
 * Rejected:
 *   - links through the entries: a miss for each link, and 8 bytes and the bucket for each entry;
 *   - open addressing in one array: the array grows all at once, which stalls the server for milliseconds at
 *     a million entries and needs three times the memory meanwhile;
 *   - segments with empty cells between (src/sched/table.c): faster to search, but an eighth to a half of the
 *     memory is empty, and one task takes 64 KiB;
 *   - the server's own dictionary: 24 bytes for each entry, and 8 to 16 for its bucket.
 */
#include "table.h"

#include <base/assert.h>
#include <sodium/crypto_shorthash.h>
#include <string.h>

enum {
    LINE = 64,
    NEAR = 6,       /* about how many cells a guess is off */
    AHEAD = 12,     /* how many entries ahead of the visit are prefetched */
    GROW_AT = 128,  /* entries for each segment: with more, one segment is split */
    SHRINK_AT = 64, /* with fewer, two are joined; far from GROW_AT, or splits and joins would alternate */
    ROUNDING = 2,   /* cells that allocators add to small blocks, or blocks would grow and shrink in turns */
    CHUNK_SHIFT = 12,
    CHUNK = 1 << CHUNK_SHIFT, /* segments in a chunk of the directory */
    TAG_SHIFT = 48,
    AHEAD_BITS = 4, /* bits of a tag that are for splits to come */
    ORDER_SHIFT = 64 - 16 + AHEAD_BITS,
    LEVEL_MAX = 31
};

#define ADDRESS ((UINT64_C(1) << TAG_SHIFT) - 1)

/* ---- hashes and cells ------------------------------------------------------------------------------------ */

void tw__redis_table_type_init(struct tw__redis_table_type *type, tw__redis_key_fn *key,
                               const struct tw__redis_memory *memory)
{
    type->key = key;
    type->memory = memory;
    _Static_assert(TW__REDIS_TABLE_SECRET == crypto_shorthash_KEYBYTES, "the secret of SipHash");
    crypto_shorthash_keygen(type->secret);
}

uint64_t tw__redis_table_hash(const struct tw__redis_table_type *type, const void *bytes, size_t size)
{
    unsigned char hash[sizeof(uint64_t)];
    uint64_t value;
    crypto_shorthash(hash, bytes, size, type->secret);
    memcpy(&value, hash, sizeof value);
    return value;
}

static void *entry_of(uint64_t cell)
{
    return (void *)(uintptr_t)(cell & ADDRESS);
}

static uint64_t hash_of(const struct tw__redis_table *table, const void *entry)
{
    const char *bytes;
    size_t size;
    table->type->key(entry, &bytes, &size);
    return tw__redis_table_hash(table->type, bytes, size);
}

/* The position in the hash of the first bit that tags of this depth hold for splits. */
static uint32_t ahead_of(uint32_t depth)
{
    return depth & ~(AHEAD_BITS - 1u);
}

static uint64_t tag_of(uint64_t hash, uint32_t depth)
{
    return (hash >> ORDER_SHIFT << AHEAD_BITS) | (hash >> ahead_of(depth) & ((1u << AHEAD_BITS) - 1));
}

static uint64_t with_tag(uint64_t cell, uint64_t tag)
{
    return tag << TAG_SHIFT | (cell & ADDRESS);
}

/* ---- which segment --------------------------------------------------------------------------------------- */

static struct tw__redis_segment *segment_at(const struct tw__redis_table *table, uint32_t number)
{
    if (table->segments == 1)
        return (struct tw__redis_segment *)&table->first;
    return &table->chunk[number >> CHUNK_SHIFT][number & (CHUNK - 1)];
}

/* How many low bits of a hash name its segment: one bit more if the segment has been split in this round. A
 * round doubles the number of segments. */
static uint32_t depth_of(const struct tw__redis_table *table, uint64_t hash)
{
    uint64_t round = UINT64_C(1) << table->level;
    return table->level + ((hash & (round - 1)) < table->segments - round);
}

static uint32_t number_of(uint64_t hash, uint32_t depth)
{
    return (uint32_t)(hash & ((UINT64_C(1) << depth) - 1));
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static size_t usable(const struct tw__redis_table *table, void *block)
{
    return block == NULL ? 0 : table->type->memory->usable(block);
}

static void release(struct tw__redis_table *table, void *block)
{
    if (block == NULL)
        return;
    table->bytes -= usable(table, block);
    table->type->memory->free(block);
}

/* Gives a block another size, or allocates it if it is NULL. Returns NULL without memory; then the block is
 * unchanged. */
static void *resize(struct tw__redis_table *table, void *block, size_t size)
{
    size_t before = usable(table, block);
    void *resized =
        block == NULL ? table->type->memory->alloc(size) : table->type->memory->realloc(block, size);
    if (resized != NULL)
        table->bytes += usable(table, resized) - before;
    return resized;
}

/* Gives a segment room for `cells` cells, and uses the room that the allocator adds by rounding up. */
static bool make_room(struct tw__redis_table *table, struct tw__redis_segment *segment, uint32_t cells)
{
    uint64_t *cell = resize(table, segment->cell, cells * sizeof *cell);
    if (cell == NULL)
        return false;
    segment->cell = cell;
    segment->capacity = (uint32_t)(usable(table, cell) / sizeof *cell);
    return true;
}

/* Allocators round up by a quarter at most, so small steps suffice, and a small table stays small. */
static uint32_t step_of(uint32_t cells)
{
    return cells < 8 ? 2 : cells < 32 ? 4 : 8;
}

/* Gives back room if it is much more than needed: so much that the allocator has a smaller size for the cells
 * that stay. */
static void give_back_room(struct tw__redis_table *table, struct tw__redis_segment *segment)
{
    uint32_t spare = segment->capacity - segment->count;
    uint32_t step = step_of(segment->count);
    if (segment->count == 0) {
        release(table, segment->cell);
        *segment = (struct tw__redis_segment){0};
    } else if (spare > segment->capacity / 4 + step + ROUNDING) {
        (void)make_room(table, segment, segment->count + step / 2); /* without memory it stays larger */
    }
}

/* ---- one segment ----------------------------------------------------------------------------------------- */

static uint32_t guess(const struct tw__redis_segment *segment, uint64_t tag)
{
    return (uint32_t)(tag * segment->count >> (64 - TAG_SHIFT));
}

/* The first cell whose tag is not lower than `tag`. */
static uint32_t first_with(const struct tw__redis_segment *segment, uint64_t tag)
{
    uint64_t lowest = tag << TAG_SHIFT;
    uint32_t at = guess(segment, tag);
    while (at > 0 && segment->cell[at - 1] >= lowest)
        at--;
    while (at < segment->count && segment->cell[at] < lowest)
        at++;
    return at;
}

/* The position of an entry's cell. Requires: the entry is in the segment. */
static uint32_t cell_of(const struct tw__redis_segment *segment, uint64_t tag, const void *entry)
{
    uint32_t at = first_with(segment, tag);
    while (entry_of(segment->cell[at]) != entry) {
        at++;
        TW_ASSERT(at < segment->count);
    }
    return at;
}

static void put(struct tw__redis_segment *segment, uint32_t at, uint64_t cell)
{
    memmove(&segment->cell[at + 1], &segment->cell[at], (segment->count - at) * sizeof cell);
    segment->cell[at] = cell;
    segment->count++;
}

static void take_out(struct tw__redis_segment *segment, uint32_t at)
{
    segment->count--;
    memmove(&segment->cell[at], &segment->cell[at + 1], (segment->count - at) * sizeof segment->cell[0]);
}

/* Sorts cells that are nearly in order: among cells with equal upper parts of the tags, the lower parts may
 * be new. */
static void put_in_order(struct tw__redis_segment *segment)
{
    for (uint32_t i = 1; i < segment->count; i++) {
        uint64_t cell = segment->cell[i];
        uint32_t at = i;
        for (; at > 0 && segment->cell[at - 1] > cell; at--)
            segment->cell[at] = segment->cell[at - 1];
        segment->cell[at] = cell;
    }
}

/* ---- the directory --------------------------------------------------------------------------------------- */

/* From the one segment inside the table to a directory with room for two. */
static bool begin_directory(struct tw__redis_table *table)
{
    struct tw__redis_segment first = table->first;
    struct tw__redis_segment **chunk = resize(table, NULL, sizeof(void *));
    if (chunk == NULL)
        return false;
    chunk[0] = resize(table, NULL, 2 * sizeof *chunk[0]);
    if (chunk[0] == NULL) {
        release(table, chunk);
        return false;
    }
    chunk[0][0] = first;
    table->chunk = chunk;
    table->chunks = 1;
    table->chunk_segments = 2;
    return true;
}

/* From a directory back to the one segment inside the table. Requires: the second segment is empty. */
static void end_directory(struct tw__redis_table *table)
{
    struct tw__redis_segment **chunk = table->chunk;
    struct tw__redis_segment first = chunk[0][0];
    release(table, chunk[0]);
    release(table, chunk);
    table->first = first;
}

static bool resize_first_chunk(struct tw__redis_table *table, uint32_t segments)
{
    struct tw__redis_segment *resized = resize(table, table->chunk[0], segments * sizeof *resized);
    if (resized == NULL)
        return false;
    table->chunk[0] = resized;
    table->chunk_segments = segments;
    return true;
}

static bool add_chunk(struct tw__redis_table *table)
{
    struct tw__redis_segment **chunk = resize(table, table->chunk, (table->chunks + 1) * sizeof(void *));
    if (chunk == NULL)
        return false;
    table->chunk = chunk;
    chunk[table->chunks] = resize(table, NULL, CHUNK * sizeof *chunk[0]);
    if (chunk[table->chunks] == NULL)
        return false;
    table->chunks++;
    return true;
}

/* Makes room in the directory for one more segment. */
static bool extend_directory(struct tw__redis_table *table)
{
    if (table->segments == 1)
        return begin_directory(table);
    if (table->segments < table->chunk_segments)
        return true;
    if (table->chunk_segments < CHUNK)
        return resize_first_chunk(table, 2 * table->chunk_segments);
    return table->segments < table->chunks * CHUNK || add_chunk(table);
}

/* Gives back the room in the directory that only more segments would need. The first chunk shrinks by half
 * when a quarter of it is used. */
static void trim_directory(struct tw__redis_table *table)
{
    if (table->segments == 1) {
        end_directory(table);
    } else if (table->chunks > 1 && table->segments <= (table->chunks - 1) * CHUNK) {
        table->chunks--;
        release(table, table->chunk[table->chunks]);
    } else if (table->segments == table->chunk_segments / 4) {
        (void)resize_first_chunk(table, table->chunk_segments / 2); /* without memory it stays larger */
    }
}

/* ---- growing --------------------------------------------------------------------------------------------- */

/* Fetches two cache lines, as an id may lie across both. */
static void fetch_entry(const char *entry)
{
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + LINE);
}

static void fetch_entries(const struct tw__redis_segment *segment)
{
    for (uint32_t i = 0; i < segment->count; i++)
        fetch_entry(entry_of(segment->cell[i]));
}

/* Makes new tags from the ids of the entries. */
static void hash_again(const struct tw__redis_table *table, struct tw__redis_segment *segment, uint32_t depth)
{
    for (uint32_t i = 0; i < segment->count; i++) {
        uint64_t *cell = &segment->cell[i];
        *cell = with_tag(*cell, tag_of(hash_of(table, entry_of(*cell)), depth));
    }
    put_in_order(segment);
}

static uint32_t cells_with(const struct tw__redis_segment *segment, uint64_t bit)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < segment->count; i++)
        n += (segment->cell[i] & bit) != 0;
    return n;
}

/* Moves the cells with the bit to the end of another segment, which has room; the order is kept. */
static void divide(struct tw__redis_segment *from, struct tw__redis_segment *to, uint64_t bit)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t cell = from->cell[i];
        if (cell & bit)
            to->cell[to->count++] = cell;
        else
            from->cell[kept++] = cell;
    }
    from->count = kept;
}

/* Moves the cells that belong in the new segment from this depth on. The new segment is empty before. Returns
 * false without memory. */
static bool fill_new_segment(struct tw__redis_table *table, struct tw__redis_segment *from,
                             struct tw__redis_segment *to, uint32_t depth)
{
    uint64_t bit = UINT64_C(1) << (TAG_SHIFT + depth - ahead_of(depth));
    uint32_t moving = cells_with(from, bit);
    if (moving == 0)
        return true;
    if (!make_room(table, to, moving))
        return false;
    divide(from, to, bit);
    give_back_room(table, from);
    return true;
}

/* Splits the segment whose turn it is. Without memory the table stays as it is, and becomes denser. */
static void split(struct tw__redis_table *table)
{
    uint32_t depth = table->level, last = table->segments, number = last - (1u << depth);
    if (depth == LEVEL_MAX || !extend_directory(table))
        return;
    struct tw__redis_segment *from = &table->chunk[number >> CHUNK_SHIFT][number & (CHUNK - 1)];
    struct tw__redis_segment *to = &table->chunk[last >> CHUNK_SHIFT][last & (CHUNK - 1)];
    bool look = ahead_of(depth + 1) != ahead_of(depth);
    *to = (struct tw__redis_segment){0};
    if (look)
        fetch_entries(from);
    if (!fill_new_segment(table, from, to, depth)) {
        trim_directory(table);
        return;
    }
    table->segments++;
    table->level += table->segments == 2u << depth;
    if (look) {
        hash_again(table, from, depth + 1);
        hash_again(table, to, depth + 1);
    }
}

/* ---- shrinking ------------------------------------------------------------------------------------------- */

/* Rewrites the tags for a lower depth. The bits that come back are the same in all cells of a segment: they
 * are bits of its number. */
static void tag_by_number(struct tw__redis_segment *segment, uint32_t number, uint32_t depth)
{
    for (uint32_t i = 0; i < segment->count; i++) {
        uint64_t tag = tag_of(segment->cell[i], depth) & ~((1u << AHEAD_BITS) - 1u);
        segment->cell[i] = with_tag(segment->cell[i], tag | tag_of(number, depth));
    }
}

/* Merges the cells of both segments into `into`, which has room, beginning at the end. `from` is empty
 * afterwards. */
static void merge_segments(struct tw__redis_segment *into, struct tw__redis_segment *from)
{
    uint32_t end = into->count + from->count;
    uint32_t left = into->count;
    into->count = end;
    while (from->count > 0)
        if (left > 0 && into->cell[left - 1] > from->cell[from->count - 1])
            into->cell[--end] = into->cell[--left];
        else
            into->cell[--end] = from->cell[--from->count];
}

/* Joins the last segment with the segment that it was split from. Returns false without memory; then the
 * table stays as it is. */
static bool join(struct tw__redis_table *table)
{
    uint32_t last = table->segments - 1;
    uint32_t depth = table->level - (table->segments == 1u << table->level);
    uint32_t number = last - (1u << depth);
    struct tw__redis_segment *from = segment_at(table, last);
    struct tw__redis_segment *into = segment_at(table, number);
    uint32_t count = into->count + from->count;
    if (count > into->capacity && !make_room(table, into, count))
        return false;
    if (ahead_of(depth + 1) != ahead_of(depth)) {
        tag_by_number(from, last, depth);
        tag_by_number(into, number, depth);
    }
    merge_segments(into, from);
    give_back_room(table, from);
    table->segments--;
    table->level = depth;
    trim_directory(table);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

void tw__redis_table_init(struct tw__redis_table *table, const struct tw__redis_table_type *type)
{
    *table = (struct tw__redis_table){.segments = 1, .type = type};
}

void tw__redis_table_fini(struct tw__redis_table *table)
{
    for (uint32_t i = 0; i < table->segments; i++)
        release(table, segment_at(table, i)->cell);
    if (table->segments > 1) {
        for (uint32_t i = 0; i < table->chunks; i++)
            release(table, table->chunk[i]);
        release(table, table->chunk);
    }
    tw__redis_table_init(table, table->type);
}

static bool has_id(const struct tw__redis_table *table, const void *entry, const char *id, size_t size)
{
    const char *bytes;
    size_t its_size;
    table->type->key(entry, &bytes, &its_size);
    return its_size == size && memcmp(bytes, id, size) == 0;
}

void *tw__redis_table_find(const struct tw__redis_table *table, uint64_t hash, const char *id, size_t size)
{
    uint32_t depth = depth_of(table, hash);
    const struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    uint64_t tag = tag_of(hash, depth);
    uint32_t at = first_with(segment, tag);
    for (; at < segment->count && segment->cell[at] >> TAG_SHIFT == tag; at++)
        if (has_id(table, entry_of(segment->cell[at]), id, size))
            return entry_of(segment->cell[at]);
    return NULL;
}

void tw__redis_table_prefetch_directory(const struct tw__redis_table *table, uint64_t hash)
{
    __builtin_prefetch(segment_at(table, number_of(hash, depth_of(table, hash))), 1);
}

void tw__redis_table_prefetch(const struct tw__redis_table *table, uint64_t hash)
{
    uint32_t depth = depth_of(table, hash);
    const struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    if (segment->cell == NULL)
        return;
    uint32_t middle = guess(segment, tag_of(hash, depth)), at = middle < NEAR ? 0 : middle - NEAR;
    for (; at <= middle + NEAR; at += LINE / sizeof *segment->cell)
        __builtin_prefetch(segment->cell + at, 1);
}

void *tw__redis_table_prefetch_entry(const struct tw__redis_table *table, uint64_t hash)
{
    uint32_t depth = depth_of(table, hash);
    const struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    uint64_t tag = tag_of(hash, depth);
    uint32_t at = first_with(segment, tag);
    if (at == segment->count || segment->cell[at] >> TAG_SHIFT != tag)
        return NULL;
    char *entry = entry_of(segment->cell[at]);
    __builtin_prefetch(entry, 1);
    __builtin_prefetch(entry + LINE, 1);
    return entry;
}

#if TW_DEBUG > 0 || defined(__clang_analyzer__) /* as TW_ASSERT */
/* Whether the table has an entry with the id of `entry`. */
static bool has_id_of(const struct tw__redis_table *table, uint64_t hash, const void *entry)
{
    const char *id;
    size_t size;
    table->type->key(entry, &id, &size);
    return tw__redis_table_find(table, hash, id, size) != NULL;
}
#endif

int tw__redis_table_insert(struct tw__redis_table *table, uint64_t hash, void *entry)
{
    uint32_t depth = depth_of(table, hash);
    struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    if ((uint64_t)(uintptr_t)entry > ADDRESS)
        return -1;
    if (segment->count == segment->capacity &&
        !make_room(table, segment, segment->count + step_of(segment->count)))
        return -1;
    uint64_t tag = tag_of(hash, depth);
    TW_ASSERT(!has_id_of(table, hash, entry));
    put(segment, first_with(segment, tag), with_tag((uintptr_t)entry, tag));
    table->count++;
    if (table->count > (uint64_t)GROW_AT * table->segments)
        split(table);
    return 0;
}

void tw__redis_table_add(struct tw__redis_table *table, uint64_t hash, void *entry)
{
    int result = tw__redis_table_insert(table, hash, entry);
    TW_ASSERT(result == 0);
    (void)result;
}

void tw__redis_table_remove(struct tw__redis_table *table, uint64_t hash, const void *entry)
{
    uint32_t depth = depth_of(table, hash);
    struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    take_out(segment, cell_of(segment, tag_of(hash, depth), entry));
    give_back_room(table, segment);
    table->count--;
    if (table->segments > 1 && table->count < (uint64_t)SHRINK_AT * table->segments)
        (void)join(table); /* without memory the table stays as it is, and is less dense */
}

void tw__redis_table_replace(struct tw__redis_table *table, uint64_t hash, const void *old, void *entry)
{
    uint32_t depth = depth_of(table, hash);
    struct tw__redis_segment *segment = segment_at(table, number_of(hash, depth));
    uint64_t tag = tag_of(hash, depth);
    segment->cell[cell_of(segment, tag, old)] = with_tag((uintptr_t)entry, tag);
}

/* Takes entries from the last segment, so that the segments go one by one. Extra memory is needed for no more
 * than a moment. */
void *tw__redis_table_pop(struct tw__redis_table *table)
{
    if (table->count == 0)
        return NULL;
    struct tw__redis_segment *last = segment_at(table, table->segments - 1);
    while (last->count == 0) {
        bool joined = join(table); /* takes no memory, as the last segment is empty */
        TW_ASSERT(joined);
        (void)joined;
        last = segment_at(table, table->segments - 1);
    }
    void *entry = entry_of(last->cell[--last->count]);
    if (last->count == 0)
        give_back_room(table, last);
    table->count--;
    return entry;
}

/* ---- going through it ------------------------------------------------------------------------------------ */

/* Visits all entries of a segment. They lie anywhere in memory, so it prefetches each entry AHEAD entries
 * before it visits the entry. */
static void visit(const struct tw__redis_segment *segment, tw__redis_each_fn *each, void *arg)
{
    for (uint32_t i = 0; i < segment->count + AHEAD; i++) {
        if (i < segment->count)
            fetch_entry(entry_of(segment->cell[i]));
        if (i >= AHEAD)
            each(entry_of(segment->cell[i - AHEAD]), arg);
    }
}

bool tw__redis_table_walk(const struct tw__redis_table *table, uint64_t *segment, tw__redis_each_fn *each,
                          void *arg)
{
    if (*segment >= table->segments)
        return false;
    visit(segment_at(table, (uint32_t)(*segment)++), each, arg);
    return true;
}

void tw__redis_table_each(const struct tw__redis_table *table, tw__redis_each_fn *each, void *arg)
{
    uint64_t segment = 0;
    while (tw__redis_table_walk(table, &segment, each, arg))
        ;
}

static uint64_t backwards(uint64_t bits)
{
    bits = (bits >> 1 & UINT64_C(0x5555555555555555)) | (bits & UINT64_C(0x5555555555555555)) << 1;
    bits = (bits >> 2 & UINT64_C(0x3333333333333333)) | (bits & UINT64_C(0x3333333333333333)) << 2;
    bits = (bits >> 4 & UINT64_C(0x0F0F0F0F0F0F0F0F)) | (bits & UINT64_C(0x0F0F0F0F0F0F0F0F)) << 4;
    return __builtin_bswap64(bits);
}

uint64_t tw__redis_table_scan_size(const struct tw__redis_table *table, uint64_t cursor)
{
    return segment_at(table, number_of(cursor, depth_of(table, cursor)))->count;
}

/* Visits one segment, then adds one to the upper `depth` bits of the position, and drops the other bits. */
uint64_t tw__redis_table_scan(const struct tw__redis_table *table, uint64_t cursor, tw__redis_each_fn *each,
                              void *arg)
{
    uint32_t depth = depth_of(table, cursor);
    visit(segment_at(table, number_of(cursor, depth)), each, arg);
    if (depth == 0)
        return 0;
    uint64_t position = backwards(cursor) >> (64 - depth);
    return backwards((position + 1) << (64 - depth));
}

/* Offers a block of the table to `move`. Returns the address that the block has afterwards. */
static void *offer(struct tw__redis_table *table, void *block, void *(*move)(void *old))
{
    size_t before = usable(table, block);
    void *to = block == NULL ? NULL : move(block);
    if (to == NULL)
        return block;
    table->bytes += usable(table, to) - before;
    return to;
}

bool tw__redis_table_relocate(struct tw__redis_table *table, uint64_t *segment, void *(*move)(void *old))
{
    if (*segment >= table->segments)
        return false;
    uint32_t number = (uint32_t)(*segment)++;
    if (number == 0 && table->segments > 1)
        table->chunk = offer(table, table->chunk, move);
    if ((number & (CHUNK - 1)) == 0 && table->segments > 1) {
        struct tw__redis_segment **chunk = &table->chunk[number >> CHUNK_SHIFT];
        *chunk = offer(table, *chunk, move);
    }
    struct tw__redis_segment *its = segment_at(table, number);
    its->cell = offer(table, its->cell, move);
    return true;
}

/* ---- checking -------------------------------------------------------------------------------------------- */

static const char *check_cell(const struct tw__redis_table *table, uint64_t cell, uint32_t number)
{
    uint64_t hash = hash_of(table, entry_of(cell));
    uint32_t depth = depth_of(table, hash);
    if (number_of(hash, depth) != number)
        return "T1: an entry is in a segment that is not its own";
    if (cell >> TAG_SHIFT != tag_of(hash, depth))
        return "T2: a tag is not that of its entry";
    return NULL;
}

static const char *check_segment(const struct tw__redis_table *table, const struct tw__redis_segment *segment,
                                 uint32_t number)
{
    const char *fault = NULL;
    if (segment->count > segment->capacity || (segment->cell == NULL) != (segment->capacity == 0) ||
        (segment->count == 0) != (segment->cell == NULL) ||
        segment->capacity * sizeof *segment->cell > usable(table, segment->cell))
        return "T4: a segment has too little memory, or is empty and has memory";
    for (uint32_t i = 0; i < segment->count && fault == NULL; i++) {
        fault = check_cell(table, segment->cell[i], number);
        if (i > 0 && segment->cell[i - 1] >> TAG_SHIFT > segment->cell[i] >> TAG_SHIFT)
            fault = "T3: the cells of a segment are out of order";
        for (uint32_t k = i;
             fault == NULL && k-- > 0 && segment->cell[k] >> TAG_SHIFT == segment->cell[i] >> TAG_SHIFT;)
            if (segment->cell[k] == segment->cell[i])
                fault = "T1: an entry is in its segment twice";
    }
    return fault;
}

/* Adds up the bytes of the directory. */
static const char *check_directory(const struct tw__redis_table *table, size_t *bytes)
{
    if (table->segments >> table->level != 1)
        return "T5: the level does not match the number of segments";
    if (table->segments == 1)
        return NULL;
    uint32_t room = table->chunks == 1 ? table->chunk_segments : table->chunks * CHUNK;
    if (table->segments > room || (table->chunks > 1 && table->chunk_segments != CHUNK) ||
        (table->chunks > 1 && table->segments <= (table->chunks - 1) * CHUNK))
        return "T5: the directory is too small or too large";
    *bytes += usable(table, table->chunk);
    for (uint32_t i = 0; i < table->chunks; i++) {
        size_t least = (i == 0 ? table->chunk_segments : CHUNK) * sizeof table->first;
        if (usable(table, table->chunk[i]) < least)
            return "T5: a chunk of the directory is too small";
        *bytes += usable(table, table->chunk[i]);
    }
    return NULL;
}

const char *tw__redis_table_check(const struct tw__redis_table *table)
{
    uint64_t count = 0;
    size_t bytes = 0;
    const char *fault = check_directory(table, &bytes);
    for (uint32_t i = 0; i < table->segments && fault == NULL; i++) {
        const struct tw__redis_segment *segment = segment_at(table, i);
        fault = check_segment(table, segment, i);
        count += segment->count;
        bytes += usable(table, segment->cell);
    }
    if (fault == NULL && (count != table->count || bytes != table->bytes))
        fault = "T6: the count of entries or of bytes is wrong";
    return fault;
}
