/* SPDX-License-Identifier: MIT
 *
 * A heap with four children a node. Go's runtime and libev keep their timers in such a heap.
 */
#define HEAP_WAYS 4
#include "heap.inc.h"

extern const struct engine engine_heap4;
const struct engine engine_heap4 = {
    .name = "heap4", .kind = KIND_PEER, .object_size = sizeof(struct object), .run = run};
