/* SPDX-License-Identifier: MIT
 *
 * The structures that the engines, the loads and the report share.
 *
 * A load is one workload at one size with all its random choices made. Every engine gets the same load. An
 * engine is a timer structure with the workload loops compiled around it (workloads.inc.h), so that the loops
 * call the structure directly.
 */
#ifndef TW_BENCH_H
#define TW_BENCH_H

#include "../clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name in the results, and the meaning of one operation. */
#define WORKLOAD_TABLE(X)                                                                                      \
    X(FLOOR1, "floor1", "read, change and write one cache line at random")                                     \
    X(FLOOR2, "floor2", "read, change and write two cache lines at random")                                    \
    X(FLOOR_CALL, "floor_call", "the same as floor1, through a function that takes the line and the value")    \
    X(ADD_UNIFORM, "add_uniform", "add, delays uniform in 1 to 1,800,000 ticks")                               \
    X(ADD_CONSTANT, "add_constant", "add, all delays 30,000 ticks")                                            \
    X(ADD_LOGNORMAL, "add_lognormal", "add, delays lognormal, median 1,000, sigma 2, at most a day")           \
    X(CANCEL_RANDOM, "cancel_random", "cancel all in random order")                                            \
    X(CHURN, "churn", "cancel and add, delays uniform in 1 to 60,000 ticks")                                   \
    X(HEARTBEAT, "heartbeat", "move to 30,000 ticks from now, about once in 1,000 ticks each")                 \
    X(STEADY, "steady", "fire and add again, delays uniform in 1 to 60,000, tick by tick")                     \
    X(EXPIRE_TICK, "expire_tick", "fire, delays uniform in 1 to 60,000, tick by tick")                         \
    X(EXPIRE_JUMP, "expire_jump", "fire, delays uniform in 1 to 60,000, in one jump")                          \
    X(MIX, "mix", "network requests: cancel and add, 98 % end before their 1, 5, 30 or 60 s")                  \
    X(NEXT_FAR, "next_far", "ask for the next event, one timer 50,000,000 ticks away")                         \
    X(EMPTY, "empty", "let 40,000,000 empty ticks pass in one call")                                           \
    X(QUIET, "quiet_poll", "let one empty tick pass in each call, one timer 50,000,000 ticks away")

enum workload {
#define WORKLOAD_ENUM(id, name, text) id,
    WORKLOAD_TABLE(WORKLOAD_ENUM)
#undef WORKLOAD_ENUM
        WORKLOADS
};

/* How a timer is filed again after it has fired. */
enum rearm { REARM_NONE, REARM_UNIFORM, REARM_CONSTANT, REARM_CLASSES };

/* The timers that have fired: their number, and a sum to which the tick and the object of every firing
 * contribute. */
struct tally {
    uint64_t fired, sum;
};

static inline void tally_add(struct tally *tally, uint64_t tick, uint32_t id)
{
    tally->fired++;
    tally->sum += tick * (id | 1);
}

enum {
    SPREAD_TICKS = 60000,   /* the delays of churn, steady and expire */
    BEAT_TICKS = 30000,     /* the delay to which a heartbeat pushes a timer, and the delay of add_constant */
    FAR_TICKS = 50000000,   /* the delay of the timer in next_far and empty */
    EMPTY_TICKS = 40000000, /* the ticks that pass in empty */
    STEADY_TICKS_MAX = 600000
};

struct load {
    enum workload workload;
    uint32_t timers;
    uint32_t repeats;  /* how often the timed part runs, each time with the next delays */
    uint64_t ops;      /* operations in all */
    uint64_t ticks;    /* the ticks of a timed part that follows the clock */
    uint32_t *visit;   /* a permutation: the order in which the objects are set up */
    uint32_t *order;   /* the object of each operation */
    uint32_t *first;   /* the first delay of each object, if it is set up before the timed part */
    uint32_t *second;  /* heartbeat: the delay to which it is moved before the timed part */
    uint32_t *delay;   /* the delay of each operation */
    uint64_t *stops;   /* ticks to go to after the timed part, to see the remaining timers fire */
    size_t stop_count; /* 0: the remaining timers are not checked */
    enum rearm rearm;
    struct tally expected; /* the timers that must fire from beginning to end */
};

/* Heartbeat and mix: the number of operations that have taken place at the end of a tick. */
static inline uint64_t load_done(const struct load *load, uint64_t tick)
{
    return tick * load->ops / load->ticks;
}

/* The delay with which a timer adds itself again. It depends on the object and the tick alone, so that the
 * expected firings can be computed without a timer structure. */
static inline uint64_t rearm_delay(enum rearm rearm, uint32_t id, uint64_t tick)
{
    static const uint32_t classes[] = {1000, 5000, 30000, 60000};
    uint64_t x = id * UINT64_C(0x9E3779B97F4A7C15) ^ tick * UINT64_C(0xC2B2AE3D27D4EB4F);
    x = (x ^ x >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> 32;
    if (rearm == REARM_UNIFORM)
        return 1 + (x * SPREAD_TICKS >> 32);
    return rearm == REARM_CLASSES ? classes[x & 3] : BEAT_TICKS;
}

struct outcome {
    double ns;              /* the time of all timed parts */
    double worst_ns;        /* the time of the slowest tick; 0 if the workload does not look for it */
    float *tick_ns;         /* room for the time of each tick in the second half of steady */
    double bytes_per_timer; /* the handle in the object and the engine's own memory */
    uint64_t ops;
    uint64_t refiled_most; /* the most timers refiled on one tick, in wheels that count them */
    uint64_t refiled_rule; /* the number that the pacing rule allows */
    struct tally tally;
};

enum kind {
    KIND_OURS,
    KIND_PEER,
    KIND_REFERENCE /* the floor and the list wheel: shown beside the peers, but never the best peer */
};

struct engine {
    const char *name;
    enum kind kind;
    int variant;
    size_t object_size;
    bool slow;      /* runs one round only at ten million timers and more, because a run takes a minute */
    uint32_t lacks; /* a bit for each workload that the engine cannot run; `why_lacks` has the reason */
    const char *why_lacks;
    void (*run)(const struct engine *engine, const struct load *load, void *arena, struct outcome *outcome);
};

extern const struct engine *const bench_engines[];
extern const size_t bench_engine_count;
extern const char *const workload_names[WORKLOADS];
extern const char *const workload_texts[WORKLOADS];

/* ---- loads.c ---- */

/* Makes all random choices. `quick` asks for fewer operations, `tail` for a check of the timers that remain
 * at the end. */
struct load *load_make(enum workload workload, uint32_t timers, uint64_t seed, bool quick, bool tail);
void load_free(struct load *load);

#endif
