/* SPDX-License-Identifier: MIT
 *
 * A hash table from ids, which are strings of bytes, to entries. It takes about nine bytes for each entry,
 * however many there are, and grows and shrinks a little at a time. How it works: head of table.c.
 *
 * The table neither makes nor frees entries. It keeps their addresses, which must fit in 48 bits. While an
 * entry is in the table, it must stay readable and its id must not change.
 *
 * Threads: one thread at a time may use a table. Only tw__redis_table_find, tw__redis_table_insert and
 * tw__redis_table_check read entries. So tw__redis_table_pop and tw__redis_table_fini may run where entries
 * must not be looked at.
 *
 * Memory: from the functions of the table's type. If they return NULL, only tw__redis_table_insert fails. All
 * other functions do without the memory: a segment, for example, then stays larger than it needs to be.
 */
#ifndef TW_REDIS_TABLE_H
#define TW_REDIS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

/* Gives the id of an entry. */
typedef void tw__redis_key_fn(const void *entry, const char **bytes, size_t *size);

/* Walking and scanning call this function with each entry. It must not change the table. */
typedef void tw__redis_each_fn(void *entry, void *arg);

enum { TW__REDIS_TABLE_SECRET = 16 };

/* Shared by all tables of the same kind of entries. */
struct tw__redis_table_type {
    tw__redis_key_fn *key;
    const struct tw__redis_memory *memory;
    unsigned char
        secret[TW__REDIS_TABLE_SECRET]; /* of the hash, so that nobody can choose ids whose hashes collide */
};

/* Internal: cells in the order of their tags. */
struct tw__redis_segment {
    uint64_t *cell;
    uint32_t count, capacity;
};

/* The structure may lie anywhere, and the owner may move it as bytes. */
struct tw__redis_table {
    union {
        struct tw__redis_segment first; /* while there is one segment */
        struct {
            struct tw__redis_segment **chunk; /* from two segments on: the directory */
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

/* Initializes a type with a random secret. Requires: `memory` outlives the type. */
void tw__redis_table_type_init(struct tw__redis_table_type *type, tw__redis_key_fn *key,
                               const struct tw__redis_memory *memory);

/* SipHash of an id with the secret of the type: the parameter `hash` of all calls. */
uint64_t tw__redis_table_hash(const struct tw__redis_table_type *type, const void *bytes, size_t size);

/* Initializes an empty table, which holds no memory. Requires: the type outlives the table. */
void tw__redis_table_init(struct tw__redis_table *table, const struct tw__redis_table_type *type);

/* Frees the table's memory, not the entries. The table is then as after tw__redis_table_init. */
void tw__redis_table_fini(struct tw__redis_table *table);

/* Returns the entry with this id, or NULL. */
void *tw__redis_table_find(const struct tw__redis_table *table, uint64_t hash, const char *id, size_t size);

/* Prefetches the entry of the directory that the functions below read. Call it a while before. */
void tw__redis_table_prefetch_directory(const struct tw__redis_table *table, uint64_t hash);

/* Prefetches the cells that tw__redis_table_find will look at first. Call it a while before. */
void tw__redis_table_prefetch(const struct tw__redis_table *table, uint64_t hash);

/* Prefetches the entry that tw__redis_table_find will most likely return. Returns that entry, or NULL if no
 * entry has the tag. Call it a while after the function above. */
void *tw__redis_table_prefetch_entry(const struct tw__redis_table *table, uint64_t hash);

/* Puts an entry in. Requires: no entry has its id. Returns 0; or -1 without memory or if the address is too
 * high, and then nothing has changed. */
__attribute__((warn_unused_result)) int tw__redis_table_insert(struct tw__redis_table *table, uint64_t hash,
                                                               void *entry);

/* The same, but cannot fail. Requires: allocations never return NULL and no address is too high, as in the
 * server. */
void tw__redis_table_add(struct tw__redis_table *table, uint64_t hash, void *entry);

/* Takes out an entry. Requires: the entry is in the table. */
void tw__redis_table_remove(struct tw__redis_table *table, uint64_t hash, const void *entry);

/* Puts `entry` in the cell of `old`, which may have been freed. Requires: `old` is in the table; `entry` has
 * the same id. */
void tw__redis_table_replace(struct tw__redis_table *table, uint64_t hash, const void *old, void *entry);

/* Takes out any one entry and returns it; NULL if the table is empty. Gives back memory on the way. */
void *tw__redis_table_pop(struct tw__redis_table *table);

static inline uint64_t tw__redis_table_count(const struct tw__redis_table *table)
{
    return table->count;
}

/* The memory that the table holds, besides struct tw__redis_table. */
static inline size_t tw__redis_table_bytes(const struct tw__redis_table *table)
{
    return table->bytes;
}

/* Visits the entries of segment *segment, and adds one to *segment. Start with 0. Returns false past the end,
 * where it visits nothing. Requires: the table does not change between the first call and the last. */
bool tw__redis_table_walk(const struct tw__redis_table *table, uint64_t *segment, tw__redis_each_fn *each,
                          void *arg);

/* Visits all entries. */
void tw__redis_table_each(const struct tw__redis_table *table, tw__redis_each_fn *each, void *arg);

/* Visits some entries. Returns the next cursor, 0 at the end. Start with 0. An entry that is in the table
 * from the first call to the last is visited, perhaps more than once. That holds even if other entries are
 * put in or taken out between the calls. Any cursor is safe. */
uint64_t tw__redis_table_scan(const struct tw__redis_table *table, uint64_t cursor, tw__redis_each_fn *each,
                              void *arg);

/* How many entries tw__redis_table_scan will visit. */
uint64_t tw__redis_table_scan_size(const struct tw__redis_table *table, uint64_t cursor);

/* For defragmentation: offers the memory of segment *segment, and on the way that of the directory, to
 * `move`. `move` returns the new address of a block that it has moved, or NULL. Adds one to *segment. Returns
 * false past the end. */
bool tw__redis_table_relocate(struct tw__redis_table *table, uint64_t *segment, void *(*move)(void *old));

/* Returns NULL, or the invariant that does not hold. Looks at all entries. */
const char *tw__redis_table_check(const struct tw__redis_table *table);

#endif
