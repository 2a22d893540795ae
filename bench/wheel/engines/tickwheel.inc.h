/* SPDX-License-Identifier: MIT
 *
 * Tickwheel as an engine. The file that includes this defines engine_geometry(variant).
 */
#include "object.inc.h"

#include <tickwheel/wheel.h>

#include <stdio.h>
#include <stdlib.h>

struct object {
    struct tw_timer timer;
    void (*fire)(struct object *object);
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct object) == 64, "one cache line");

static struct tw_wheel *wheel;
static struct tw_geometry engine_geometry(int variant);

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    struct tw_geometry geometry = engine_geometry(engine->variant);
    (void)timers;
    if (tw_wheel_new(&wheel, &geometry, 0) != 0) {
        fprintf(stderr, "wheel_bench: %s: no wheel\n", engine->name);
        exit(1);
    }
}

static inline void engine_close(void)
{
    tw_wheel_free(wheel);
}

static inline void engine_prepare(struct object *object)
{
    tw_timer_init(&object->timer);
    object->fire = handle;
}

static inline void engine_add(struct object *object, uint64_t deadline)
{
    tw_wheel_add_at(wheel, &object->timer, deadline);
}

static inline void engine_cancel(struct object *object)
{
    tw_wheel_cancel(wheel, &object->timer);
}

static inline void engine_move(struct object *object, uint64_t deadline)
{
    tw_wheel_move_at(wheel, &object->timer, deadline);
}

static inline void engine_advance(uint64_t tick)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, tick)) != NULL) {
        struct object *object = TW_CONTAINER(timer, struct object, timer);
        object->fire(object);
    }
}

static inline uint64_t engine_next(void)
{
    return tw_wheel_next_bound(wheel);
}

#define ENGINE_REFILED() tw_wheel_refiled(wheel)
#define ENGINE_REFILE_SPAN 512 /* level 1 of the default geometry; no other geometry reports this */

#include "../workloads.inc.h"
