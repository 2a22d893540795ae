/* SPDX-License-Identifier: MIT
 *
 * Every engine's file begins with this: a connection, of the same size with each engine. The time of the last
 * read stands beside the timer, so that a read and its heartbeat share a cache line if the timer is small
 * enough.
 */
#include "../beats.h"

#include <string.h>
#include <sys/resource.h>

#define BENCH_CONNECTION(timer_type)                                                                           \
    struct connection {                                                                                        \
        timer_type timer;                                                                                      \
        uint32_t heard_ms, id;                                                                                 \
        bool reaped;                                                                                           \
    } __attribute__((aligned(CONNECTION_BYTES)));                                                              \
    _Static_assert(sizeof(struct connection) == CONNECTION_BYTES, "as large with each engine")

#define BENCH_ENGINE(symbol) const struct engine engine_##symbol = {.name = #symbol, .run = run}

struct connection;
static void reap(struct connection *connection);
