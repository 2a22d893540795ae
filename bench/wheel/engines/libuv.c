/* SPDX-License-Identifier: MIT
 *
 * libuv through its public calls: uv_timer_start, uv_timer_stop, uv_run without waiting, uv_backend_timeout.
 * It reads our clock (bench/clock.c), in whole milliseconds. A uv_timer_t takes 152 bytes, so an object is
 * three cache lines.
 */
#include "object.inc.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct object {
    uv_timer_t timer;
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));

static uv_loop_t loop;
static uint32_t handles;

static void on_timer(uv_timer_t *timer)
{
    handle((struct object *)(void *)timer);
}

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    handles = timers;
    if (uv_loop_init(&loop) != 0) {
        fprintf(stderr, "wheel_bench: %s: no loop\n", engine->name);
        exit(1);
    }
}

static void engine_close(void);

static inline void engine_prepare(struct object *object)
{
    uv_timer_init(&loop, &object->timer);
}

static inline void engine_add(struct object *object, uint64_t deadline)
{
    uv_timer_start(&object->timer, on_timer, deadline - now_tick, 0);
}

static inline void engine_cancel(struct object *object)
{
    uv_timer_stop(&object->timer);
}

/* In libuv one moves a pending timer by starting it again. */
static inline void engine_move(struct object *object, uint64_t deadline)
{
    uv_timer_start(&object->timer, on_timer, deadline - now_tick, 0);
}

static inline void engine_advance(uint64_t tick)
{
    bench_set_tick(tick);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static inline uint64_t engine_next(void)
{
    return (uint64_t)uv_backend_timeout(&loop);
}

#include "../workloads.inc.h"

/* A loop closes its handles one by one, in its next iteration. */
static void engine_close(void)
{
    for (uint32_t i = 0; i < handles; i++)
        uv_close((uv_handle_t *)&objects[i].timer, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    if (uv_loop_close(&loop) != 0) {
        fprintf(stderr, "wheel_bench: libuv: the loop does not close\n");
        exit(1);
    }
}

extern const struct engine engine_libuv;
const struct engine engine_libuv = {
    .name = "libuv", .kind = KIND_PEER, .object_size = sizeof(struct object), .slow = true, .run = run};
