/* SPDX-License-Identifier: MIT
 *
 * Every engine's file begins with this: the clock of the workload loops, and the handler of a timer that
 * fires.
 */
#include "../bench.h"

#ifndef ENGINE_CALL
#define ENGINE_CALL __attribute__((noinline)) /* not inlined, as the functions of a library are not */
#endif

struct object;
static uint64_t now_tick;
static void handle(struct object *object);
