/* SPDX-License-Identifier: MIT
 *
 * What every engine's file begins with: the clock of the workload loops, and the handler of a timer that fires.
 */
#include "../bench.h"

#define ENGINE_CALL __attribute__((noinline)) /* called as a library's functions are */

struct object;
static uint64_t now_tick;
static void handle(struct object *object);
