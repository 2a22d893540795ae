/* SPDX-License-Identifier: MIT
 *
 * The table of a shard's keys. The shard's lock is held.
 */
#ifndef TW_SCHED_TABLE_H
#define TW_SCHED_TABLE_H

#include "internal.h"

/* Finds, one by one, the keys that have a tag; NULL: no more. The table must not change meanwhile. */
struct tw__sched_probe tw__sched_table_probe(const struct tw__sched_table *table, uint32_t tag);
const struct tw__sched_cell *tw__sched_probe_next(struct tw__sched_probe *probe);
/* False: no memory. */
bool tw__sched_table_add(struct tw__sched_shard *shard, const struct tw__sched_cell *cell);
/* Requires: it is there. */
void tw__sched_table_remove(struct tw__sched_shard *shard, uint32_t tag,
                            const struct tw__sched_details *details);
void tw__sched_table_end(struct tw__sched_shard *shard);

#endif
