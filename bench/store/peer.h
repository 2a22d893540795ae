/* SPDX-License-Identifier: MIT
 *
 * A peer is a place where tasks are filed: our store, SQLite alone, or beanstalkd. The loads of main.c make the
 * same calls to each of them.
 */
#ifndef BENCH_STORE_PEER_H
#define BENCH_STORE_PEER_H

#include <stddef.h>
#include <stdint.h>

enum { PAYLOAD = 100, ID_SIZE = 16, BATCH = 1000 };

#define QUEUE "orders"

/* A task that waits. Its payload is `payload`, and its queue QUEUE. */
struct row {
    uint64_t due_ms;
    char id[ID_SIZE]; /* terminated */
    size_t id_size;
};

struct peer {
    const char *name;
    /* Opens the file, and makes it if it does not exist. Opens a server's folder and starts the server. */
    void *(*open)(const char *path);
    void (*close)(void *self);
    /* Change tasks in one commit, which is on the disk when the call returns. `cancel` and `move` may be NULL.
     * Each ends the program if a task to cancel or to move is not there. */
    void (*put)(void *self, const struct row *rows, size_t n);
    void (*cancel)(void *self, const struct row *rows, size_t n);
    void (*move)(void *self, const struct row *rows, size_t n);
};

extern const struct peer tickwheel_peer, raw_peer, beanstalkd_f0_peer, beanstalkd_f50_peer;

extern const char payload[PAYLOAD];

#endif
