/* SPDX-License-Identifier: MIT
 *
 * The table of a shard's keys. The caller holds the shard's lock, unless a comment says otherwise.
 */
#ifndef TW_SCHED_TABLE_H
#define TW_SCHED_TABLE_H

#include "internal.h"

/* A search that finds the keys with a tag, one after the other. tw__sched_probe_next() returns the index of
 * the next such key's task, or TW__SCHED_NONE. Requires: the table does not change during the search. */
struct tw__sched_probe tw__sched_table_probe(const struct tw__sched_table *table, uint32_t tag);
uint32_t tw__sched_probe_next(struct tw__sched_probe *probe);
/* Fetches the cache line in which the search for a tag will begin. No lock is needed. */
void tw__sched_table_prefetch(const struct tw__sched_table *table, uint32_t tag);
/* Adds the key of the task with an index. Returns false if there is no memory, or if the tag's segment is full
 * (4,095 keys) and cannot be split. */
bool tw__sched_table_add(struct tw__sched_shard *shard, uint32_t tag, uint32_t index);
/* Removes a key. Requires: the key is in the table. */
void tw__sched_table_remove(struct tw__sched_shard *shard, uint32_t tag, uint32_t index);
/* Calls `visit` with the tag of each key. Cost: O(cells). */
void tw__sched_table_visit(const struct tw__sched_table *table, void visit(void *arg, uint32_t tag), void *arg);
void tw__sched_table_end(struct tw__sched_shard *shard);

#endif
