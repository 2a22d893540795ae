/* SPDX-License-Identifier: MIT
 *
 * The socket on which `tickwheel run --stats PATH` tells how it is doing. docs/top.md has the protocol: who
 * connects sends lines "stats", and is answered to each with one line of JSON.
 */
#ifndef COMMAND_STATS_SOCKET_H
#define COMMAND_STATS_SOCKET_H

#include <tickwheel/sched.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

enum { STATS_PROTOCOL = 1, STATS_STEPS = 60 };
#define STATS_REQUEST "stats\n"
#define STATS_STEP_NS UINT64_C(1000000000)

/* Whether a path fits into the address of a socket; if not, that has been complained about, `what` before
 * it. */
bool stats_address(const char *what, const char *path, struct sockaddr_un *address);

/* Takes a path, which nobody else may be listening at. Requires: it fits; no other thread runs yet, as this
 * changes the umask for a moment. Returns whether it worked; if not, that has been complained about. */
bool stats_open(const char *path);

/* Answers from now on, on a thread of its own. Returns as above. */
bool stats_start(const struct tw_sched *sched);

/* Notes how late a call was. Threads: any. */
void stats_note(uint64_t late_ns);

/* Ends it, and removes the path. Does nothing if it was not opened. The scheduler must still be there. */
void stats_close(void);

#endif
