/* SPDX-License-Identifier: MIT
 *
 * The interface between main.c and an engine. An engine is the C or the C++ interface under the same loads
 * (loads.inc.h).
 */
#ifndef BENCH_CPP_BENCH_H
#define BENCH_CPP_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOAD_TABLE(X)                                                                                          \
    X(ADD, "add", "wheel: add")                                                                                \
    X(MOVE_LATER, "move_later", "wheel: move later")                                                           \
    X(CANCEL, "cancel", "wheel: cancel")                                                                       \
    X(EXPIRE, "expire", "wheel: poll due timers, tick by tick")                                                \
    X(MIX, "mix", "wheel: cancel and add, poll now and then")                                                  \
    X(TASK_ADD, "task_add", "scheduler: add")                                                                  \
    X(TASK_CANCEL, "task_cancel", "scheduler: cancel")                                                         \
    X(TASK_FIRE, "task_fire", "scheduler: fire")                                                               \
    X(KEY_SET, "key_set", "scheduler: set a key")                                                              \
    X(KEY_MOVE, "key_move", "scheduler: move a key")                                                           \
    X(KEY_REMOVE, "key_remove", "scheduler: remove a key")                                                     \
    X(HEAP_ADD, "heap_add", "scheduler: add with two words on the heap")                                       \
    X(HEAP_CANCEL, "heap_cancel", "scheduler: cancel these")                                                   \
    X(HEAP_FIRE, "heap_fire", "scheduler: fire these")

enum load {
#define LOAD_ENUM(id, name, text) id,
    LOAD_TABLE(LOAD_ENUM)
#undef LOAD_ENUM
        LOADS
};

/* The figures of every load, and the results that must be the same for all engines. */
struct outcome {
    double ns[LOADS]; /* the time of one operation */
    uint64_t fired, sum;
};

/* Runs every load on `timers` timers or tasks, about `operations` operations of each load. */
typedef void run_fn(uint32_t timers, uint32_t operations, uint64_t seed, struct outcome *outcome);

run_fn run_c, run_c_again, run_cpp, run_cpp_raw;

/* Zeroed memory for the objects. Every engine gets the same memory. */
void *arena(size_t size);
/* The numbers 0 to timers - 1, shuffled: the order in which objects are visited. */
const uint32_t *order_of(uint32_t timers);

#ifdef __cplusplus
}
#endif

#endif
