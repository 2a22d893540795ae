/* SPDX-License-Identifier: MIT
 *
 * A binary heap, as in textbooks.
 */
#define HEAP_WAYS 2
#include "heap.inc.h"

extern const struct engine engine_heap2;
const struct engine engine_heap2 = {
    .name = "heap2", .kind = KIND_PEER, .object_size = sizeof(struct object), .run = run};
