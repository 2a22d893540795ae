/* SPDX-License-Identifier: MIT
 *
 * A heap of four children a node, as Go's runtime keeps its timers (and libev).
 */
#define HEAP_WAYS 4
#include "heap.inc.h"

extern const struct engine engine_heap4;
const struct engine engine_heap4 = {
    .name = "heap4", .kind = KIND_PEER, .object_size = sizeof(struct object), .run = run};
