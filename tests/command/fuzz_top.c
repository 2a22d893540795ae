/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the replies of a server, as `tickwheel top` reads them (top/feed_redis.c, top/info.c, link/link.c).
 * The input is the server's replies in RESP, one connection after the other (peer.h). It is read twice: by a
 * command that shows all queues, and by a command that shows one.
 */
#include "peer.h"
#include "seen.h"

#include "tests/support/fuzz.h"

static void read_all(const uint8_t *data, size_t size, const char *queue)
{
    static struct top_options options;
    char error[URL_ERROR];
    options.queue = queue;
    options.link.target.password_variable = "PASSWORD";
    fuzz_require(url_parse("unix:user:secret@" PEER_PATH "?db=3", &options.link.target.url, error), error);
    peers_begin(data, size, true);
    struct feed *feed = feed_redis(&options);
    fuzz_require(feed != NULL, "there is no memory");
    seen_read(feed, 3);
    peers_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, NULL);
    read_all(data, size, "mails");
    return 0;
}
