/* SPDX-License-Identifier: MIT
 *
 * What the engines, the loads and the report share.
 *
 * A load is one workload at one size with all its random choices made: every engine gets the same one. An
 * engine is a timer structure with the workload loops compiled around it (workloads.inc.h), so that each is
 * called directly.
 */
#ifndef TW_BENCH_H
#define TW_BENCH_H

#include "../clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name in the results, and what one operation is. */
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
    X(EMPTY, "empty", "let 40,000,000 empty ticks pass in one call")

enum workload {
#define WORKLOAD_ENUM(id, name, text) id,
    WORKLOAD_TABLE(WORKLOAD_ENUM)
#undef WORKLOAD_ENUM
        WORKLOADS
};

/* What a timer does after it has fired. */
enum rearm { REARM_NONE, REARM_UNIFORM, REARM_CONSTANT, REARM_CLASSES };

/* What has fired: how many, and a sum in which every firing's tick and object count. */
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
    BEAT_TICKS = 30000,     /* how far a heartbeat pushes, and the delay of add_constant */
    FAR_TICKS = 50000000,   /* the timer of next_far and empty */
    EMPTY_TICKS = 40000000, /* the ticks that empty lets pass */
    STEADY_TICKS_MAX = 600000
};

struct load {
    enum workload workload;
    uint32_t timers;
    uint32_t repeats;  /* how often the timed part is done over, with the next delays */
    uint64_t ops;      /* operations in all */
    uint64_t ticks;    /* of a timed part that is led by the clock */
    uint32_t *visit;   /* a permutation: the order in which the objects are set up */
    uint32_t *order;   /* the object of each operation */
    uint32_t *first;   /* the first delay of each object, where it is set up before the timed part */
    uint32_t *second;  /* heartbeat: where it is moved to before the timed part */
    uint32_t *delay;   /* the delay of each operation */
    uint64_t *stops;   /* ticks to go to after the timed part, to see what is left fire */
    size_t stop_count; /* 0: what is left is not looked at */
    enum rearm rearm;
    struct tally expected; /* what has to fire from beginning to end */
};

/* Heartbeat and mix: the operations before this one have taken place when a tick is over. */
static inline uint64_t load_done(const struct load *load, uint64_t tick)
{
    return tick * load->ops / load->ticks;
}

/* The delay with which a timer adds itself again: a function of object and tick, so that what has to happen can
 * be worked out without a timer structure. */
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
    double ns;              /* of the timed parts together */
    double worst_ns;        /* of the slowest single tick; 0 where that is not looked for */
    float *tick_ns;         /* room for what each tick of the second half of steady took */
    double bytes_per_timer; /* the handle in the object and the engine's own memory */
    uint64_t ops;
    uint64_t refiled_most; /* wheels that count it: timers refiled on one tick */
    uint64_t refiled_rule; /* and what the pacing rule allows */
    struct tally tally;
};

enum kind {
    KIND_OURS,
    KIND_PEER,
    KIND_REFERENCE /* shown beside, never the best peer: the floor and the list wheel */
};

struct engine {
    const char *name;
    enum kind kind;
    int variant;
    size_t object_size;
    bool slow;      /* at ten million timers and more one round has to do: a run takes a minute */
    uint32_t lacks; /* a bit for each workload that the engine cannot do, because of `why_lacks` */
    const char *why_lacks;
    void (*run)(const struct engine *engine, const struct load *load, void *arena, struct outcome *outcome);
};

extern const struct engine *const bench_engines[];
extern const size_t bench_engine_count;
extern const char *const workload_names[WORKLOADS];
extern const char *const workload_texts[WORKLOADS];

/* ---- loads.c ---- */

/* Makes all random choices. `quick` asks for fewer operations, `tail` for a look at what is left at the end. */
struct load *load_make(enum workload workload, uint32_t timers, uint64_t seed, bool quick, bool tail);
void load_free(struct load *load);

#endif
