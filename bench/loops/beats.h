/* SPDX-License-Identifier: MIT
 *
 * The structures that the engines and main.c share. An engine is an event loop with its idle timeouts, and
 * the loads of turns.inc.h compiled around it. The plan says which connection is read when, and every engine
 * gets the same plan. In the names of this benchmark an iteration of the event loop is a turn.
 */
#ifndef TW_BENCH_BEATS_H
#define TW_BENCH_BEATS_H

#include "../clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDLE_MS =
        30000, /* a connection without a read for so long is reaped; all of them are accepted in this time */
    WARM_MS = 3000,        /* the warm part, in which some connections fall silent */
    PERIOD_MS = 1000,      /* each connection is read about once in this time */
    PACE_MS = 10,          /* live: the interval at which the network brings new data */
    LATE_TURNS = 8,        /* a timer that fires more iterations than this after its time voids the run */
    CONNECTION_BYTES = 256 /* the same with every engine: the largest timer takes 152 */
};

struct plan {
    uint32_t connections;
    uint32_t per_turn; /* reads in one iteration of the loop */
    uint64_t turn_ms;  /* virtual time from one iteration to the next */
    uint64_t accept_reads, warm_reads, timed_reads;
    uint32_t accepts; /* new connections in an iteration, until all are accepted */
    uint32_t live_ms; /* the real time of the live part */
    uint32_t silent;  /* connections that fall silent in the warm part and expire in the timed part */
    uint32_t *visit;  /* all connections, shuffled: the order of accepting */
    uint32_t *left;   /* the connections that do not fall silent */
    uint32_t *order;  /* the connection of each read, from the first read to the last */
};

/* The figures of one engine. A bare run is the same loop with the same reads and no timers. */
struct outcome {
    double ns;                /* the time of a read, with its timer and its share of the iteration */
    double cpu_ms_per_s;      /* live: processor time */
    double wakeups_per_s;     /* live: how often the loop woke up, without the wake-ups by the network */
    double arms_per_s;        /* live: how often a timer descriptor was set */
    double bytes;             /* the memory of a timer, in its connection and in the loop */
    uint64_t late_turns_most; /* the iterations by which the latest timer was late */
};

struct engine {
    const char *name;
    void (*run)(const struct plan *plan, void *arena, bool bare, struct outcome *outcome);
};

#define ENGINE_TABLE(X)                                                                                        \
    X(tickwheel)                                                                                               \
    X(tickwheel_in)                                                                                            \
    X(tickwheel_timerfd)                                                                                       \
    X(libev)                                                                                                   \
    X(libuv)                                                                                                   \
    X(libevent_common)                                                                                         \
    X(libevent_heap)

#define ENGINE_DECLARE(symbol) extern const struct engine engine_##symbol;
ENGINE_TABLE(ENGINE_DECLARE)
#undef ENGINE_DECLARE

/* Prints the reason, and ends the program. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- steer.c: the time that a loop sees, and the descriptors that it waits for ---- */

/* Opens two descriptors. One is always readable in virtual time, the other every PACE_MS of live time. */
void steer_open(void);
void steer_close(void);
int steer_ready_fd(void);
int steer_pace_fd(void);

/* Moves virtual time on by this many milliseconds. A timer descriptor that is due by then becomes
 * readable. */
void steer_on(uint64_t ms);
/* The virtual time in milliseconds. It stands still while time is live. */
uint64_t steer_ms(void);
/* Makes time live or virtual from now on. Live time passes as it does, and the network brings new data every
 * PACE_MS. */
void steer_live(bool live);
/* Live: the number of intervals of PACE_MS since the last call. */
uint64_t steer_paces(void);
/* How often the loop has set a timer descriptor. */
uint64_t steer_arms(void);

#endif
