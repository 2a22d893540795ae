/* SPDX-License-Identifier: MIT
 *
 * From ids, strings of bytes, to entries: a hash table that takes about nine bytes for each entry, however many
 * there are, and that grows and shrinks a little at a time. How: head of table.c.
 *
 * The table neither makes nor frees entries; it keeps their addresses, which must fit in 48 bits. An entry must
 * stay readable, and its id the same, while it is in.
 *
 * Threads: a table is one thread's at a time. Only tw__redis_table_find, tw__redis_table_insert and
 * tw__redis_table_check read entries, so tw__redis_table_pop and tw__redis_table_fini may run where entries
 * must not be looked at.
 *
 * Memory: that of the table's type. If it answers NULL, only tw__redis_table_insert fails; what else could not
 * be had is done without.
 */
#ifndef TW_REDIS_TABLE_H
#define TW_REDIS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

/* Tells an entry's id. */
typedef void tw__redis_key_fn(const void *entry, const char **bytes, size_t *size);

/* What walking and scanning call with each entry. It must not change the table. */
typedef void tw__redis_each_fn(void *entry, void *arg);

enum { TW__REDIS_TABLE_SECRET = 16 };

/* What tables of the same kind of entries share. */
struct tw__redis_table_type {
    tw__redis_key_fn *key;
    const struct tw__redis_memory *memory;
    unsigned char
        secret[TW__REDIS_TABLE_SECRET]; /* of the hash, so that nobody can choose ids whose hashes collide */
};

/* Inner: cells in the order of their tags. */
struct tw__redis_segment {
    uint64_t *cell;
    uint32_t count, capacity;
};

/* May lie anywhere, and be moved as bytes. */
struct tw__redis_table {
    union {
        struct tw__redis_segment first; /* while there is one segment */
        struct {
            struct tw__redis_segment **chunk; /* then: the directory */
            uint32_t chunks;
            uint32_t chunk_segments; /* room in the first chunk; the others are full-sized */
        };
    };
    uint32_t segments;
    uint32_t level; /* the binary logarithm of segments, rounded down */
    uint64_t count;
    size_t bytes;
    const struct tw__redis_table_type *type;
};

/* Draws a secret. Requires: `memory` stays. */
void tw__redis_table_type_init(struct tw__redis_table_type *type, tw__redis_key_fn *key,
                               const struct tw__redis_memory *memory);

/* SipHash of an id under the secret of the type: what all calls want as `hash`. */
uint64_t tw__redis_table_hash(const struct tw__redis_table_type *type, const void *bytes, size_t size);

/* An empty table, which holds no memory. Requires: its type stays. */
void tw__redis_table_init(struct tw__redis_table *table, const struct tw__redis_table_type *type);

/* Frees the table's memory, not the entries. The table is then as after tw__redis_table_init. */
void tw__redis_table_fini(struct tw__redis_table *table);

/* The entry with this id, or NULL. */
void *tw__redis_table_find(const struct tw__redis_table *table, uint64_t hash, const char *id, size_t size);

/* Fetches the cells that tw__redis_table_find will look at first. To be called a while before. */
void tw__redis_table_prefetch(const struct tw__redis_table *table, uint64_t hash);

/* Then, a while later: fetches the entry that will be found. */
void tw__redis_table_prefetch_entry(const struct tw__redis_table *table, uint64_t hash);

/* Puts an entry in. Requires: none has its id. Returns: 0, or -1: no memory, or an address too high; nothing
 * changed. */
__attribute__((warn_unused_result)) int tw__redis_table_insert(struct tw__redis_table *table, uint64_t hash,
                                                               void *entry);

/* The same where memory never answers NULL and no address is too high, as in the server: it cannot fail. */
void tw__redis_table_add(struct tw__redis_table *table, uint64_t hash, void *entry);

/* Takes out an entry. Requires: it is in. */
void tw__redis_table_remove(struct tw__redis_table *table, uint64_t hash, const void *entry);

/* Puts `entry`, which has the same id, in the cell of `old`, which may have been freed. Requires: `old` is
 * in. */
void tw__redis_table_replace(struct tw__redis_table *table, uint64_t hash, const void *old, void *entry);

/* Takes some entry out and returns it; NULL when there is none. Memory is given back on the way. */
void *tw__redis_table_pop(struct tw__redis_table *table);

static inline uint64_t tw__redis_table_count(const struct tw__redis_table *table)
{
    return table->count;
}

/* The memory it holds, besides struct tw__redis_table. */
static inline size_t tw__redis_table_bytes(const struct tw__redis_table *table)
{
    return table->bytes;
}

/* Visits the entries of segment *segment, and makes it the next. Start with 0. Returns: false when past the
 * end, and nothing was visited. Requires: nothing changes from the first call to the last. */
bool tw__redis_table_walk(const struct tw__redis_table *table, uint64_t *segment, tw__redis_each_fn *each,
                          void *arg);

/* Visits some entries. Returns: the next cursor, 0 at the end. Start with 0. An entry that is in from the first
 * call to the last is visited, perhaps more than once, whatever goes in and out between the calls. Any cursor
 * is safe. */
uint64_t tw__redis_table_scan(const struct tw__redis_table *table, uint64_t cursor, tw__redis_each_fn *each,
                              void *arg);

/* How many that will be. */
uint64_t tw__redis_table_scan_size(const struct tw__redis_table *table, uint64_t cursor);

/* For defragmentation: offers the memory of segment *segment, and the directory's on the way, to `move`, which
 * answers the new address of what it has moved, or NULL. Makes *segment the next; false when past the end. */
bool tw__redis_table_relocate(struct tw__redis_table *table, uint64_t *segment, void *(*move)(void *old));

/* NULL, or which invariant does not hold. Looks at everything. */
const char *tw__redis_table_check(const struct tw__redis_table *table);

#endif
