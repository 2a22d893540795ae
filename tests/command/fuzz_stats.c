/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the statistics of `tickwheel run --stats`, as `tickwheel top` reads them (top/feed_sched.c): another
 * process may listen at the path. The input is that process's answers (peer.h), in lines of JSON.
 */
#include "peer.h"
#include "seen.h"

#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct top_options options = {.stats = PEER_PATH};
    peers_begin(data, size, true);
    struct feed *feed = feed_sched(&options);
    fuzz_require(feed != NULL, "there is no memory");
    seen_read(feed, 2);
    peers_end();
    return 0;
}
