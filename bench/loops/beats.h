/* SPDX-License-Identifier: MIT
 *
 * What the engines and main.c share. An engine is an event loop with its idle timeouts, and the turns of
 * turns.inc.h compiled around it. The plan says which connection is read when; every engine gets the same one.
 */
#ifndef TW_BENCH_BEATS_H
#define TW_BENCH_BEATS_H

#include "../clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDLE_MS = 30000,  /* after so long without a read a connection is reaped; over so long they come */
    WARM_MS = 3000,   /* in which some fall silent */
    PERIOD_MS = 1000, /* each connection is read about once in so long */
    PACE_MS = 10,     /* live: the network brings what there is so often */
    LATE_TURNS = 8,   /* a timer that fires more turns of the loop after its time than this voids the run */
    CONNECTION_BYTES = 256 /* with every engine: the largest timer takes 152 */
};

struct plan {
    uint32_t connections;
    uint32_t per_turn; /* reads in one turn of the loop */
    uint64_t turn_ms;  /* virtual time from one turn to the next */
    uint64_t accept_reads, warm_reads, timed_reads;
    uint32_t accepts; /* new connections in a turn, until all are there */
    uint32_t live_ms; /* of real time */
    uint32_t silent;  /* so many are not read again before the warm turns end, and run out in the timed ones */
    uint32_t *visit;  /* all, shuffled: the order of accepting */
    uint32_t *left;   /* those that do not fall silent */
    uint32_t *order;  /* the connection of each read, from the first to the last of them */
};

/* What one engine took; bare is the same loop with the same reads and no timers. */
struct outcome {
    double ns;                /* of a read, with what its timer took and its part of the turn */
    double cpu_ms_per_s;      /* live: processor time */
    double wakeups_per_s;     /* live: how often it was woken, beyond what the network brought */
    double arms_per_s;        /* live: how often a timer descriptor was set */
    double bytes;             /* of a timer, in its connection and in the loop */
    uint64_t late_turns_most; /* of any timer */
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

/* Says why, and ends the program. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- steer.c: the time that a loop sees, and the descriptors that it waits for ---- */

/* Opens the two: one is readable in virtual time, always, the other every PACE_MS of live time. */
void steer_open(void);
void steer_close(void);
int steer_ready_fd(void);
int steer_pace_fd(void);

/* Virtual time goes on by so many milliseconds; a timer descriptor that is due by then becomes readable. */
void steer_on(uint64_t ms);
/* The milliseconds of virtual time. They stand while time is live. */
uint64_t steer_ms(void);
/* From now on time passes as it does, and the network brings something every PACE_MS; or it is virtual
 * again. */
void steer_live(bool live);
/* Live: how many times PACE_MS have passed since the last call. */
uint64_t steer_paces(void);
/* How often the loop has set a timer descriptor. */
uint64_t steer_arms(void);

#endif
