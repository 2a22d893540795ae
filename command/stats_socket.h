/* SPDX-License-Identifier: MIT
 *
 * The socket of `tickwheel run --stats PATH`, which serves statistics. docs/top.md describes the protocol:
 * the client sends lines "stats", and the server answers each with one line of JSON.
 */
#ifndef COMMAND_STATS_SOCKET_H
#define COMMAND_STATS_SOCKET_H

#include "command.h"

#include <tickwheel/sched.h>

enum { STATS_PROTOCOL = 1, STATS_STEPS = 60 };
#define STATS_REQUEST "stats\n"
#define STATS_STEP_NS UINT64_C(1000000000)

/* How late calls were, in nanoseconds: the numbers of an answer, and their names. */
enum late { LATE_CALLS, LATE_P50, LATE_P90, LATE_P99, LATE_P999, LATE_MAX, LATE_NUMBERS };
extern const char *const LATE_NAMES[LATE_NUMBERS];

/* Takes the option --stats into a const char *. Refuses a path that does not fit into an address. */
bool stats_take_path(const struct option_row *row);

/* Binds the socket to a path. Fails if another process listens there. Requires: the path fits; no other
 * thread runs yet, because the umask changes for a moment. Returns false on failure, after it has printed an
 * error. */
bool stats_open(const char *path);

/* Starts the thread that answers clients. Returns false on failure, after it has printed an error. */
bool stats_start(const struct tw_sched *sched);

/* Records how late a call was. Threads: any. */
void stats_note(uint64_t late_ns);

/* Stops the thread and removes the path. Does nothing if the socket is not open. Requires: the scheduler
 * still exists. */
void stats_close(void);

#endif
