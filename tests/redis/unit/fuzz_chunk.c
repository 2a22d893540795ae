/* SPDX-License-Identifier: MIT
 *
 * Fuzzes chunks of tasks (queues/chunk.c, attempt.c): the strings of RESTORE and of an RDB file, and of
 * TW.LOAD and TW.FIRED in an append-only file. A chunk that is accepted gives tasks that
 * are in order, and that come back from chunks of their own; a chunk that is refused leaves queues whose
 * invariants hold, and no memory.
 */
#include "copies.h"

#include "tests/support/fuzz.h"

enum { MOST = 16384 }; /* bytes; so that the tasks fit into chunks of TW__REDIS_CHUNK_TASKS */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (all == NULL) {
        use_seed();
        open_all();
    }
    size = size < MOST ? size : MOST;
    read_chunk((const char *)data, size);
    for (uint32_t strings = 0; strings < 3; strings++)
        read_logged((const char *)data, size, strings);
    return 0;
}
