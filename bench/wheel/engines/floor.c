/* SPDX-License-Identifier: MIT
 *
 * The floor: the cost of touching the objects, without any timer structure. An operation is one random
 * read-modify-write of one cache line, or of two, over the same 64-byte objects and in the same order as
 * churn. The accesses do not depend on each other, so that the processor overlaps them as well as it can. A
 * third load touches one line through a call: the least that a library could cost.
 */
#include "../bench.h"

struct line {
    uint64_t payload, rest[7];
} __attribute__((aligned(64)));

static double touch_one(const struct load *load, struct line *lines)
{
    uint64_t start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++)
        lines[load->order[k]].payload += k;
    return (double)(bench_real_ns() - start);
}

static __attribute__((noinline)) void store(struct line *line, uint64_t value)
{
    line->payload += value;
}

static double touch_through_call(const struct load *load, struct line *lines)
{
    uint64_t start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++)
        store(&lines[load->order[k]], k);
    return (double)(bench_real_ns() - start);
}

/* The second line is that of the operation half the load away. */
static double touch_two(const struct load *load, struct line *lines)
{
    uint64_t half = load->ops / 2, start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++) {
        lines[load->order[k]].payload += k;
        lines[load->order[k < half ? k + half : k - half]].payload += k;
    }
    return (double)(bench_real_ns() - start);
}

static double touch(const struct load *load, struct line *lines)
{
    switch (load->workload) {
    case FLOOR1:
        return touch_one(load, lines);
    case FLOOR2:
        return touch_two(load, lines);
    default:
        return touch_through_call(load, lines);
    }
}

static void run(const struct engine *engine, const struct load *load, void *arena, struct outcome *outcome)
{
    struct line *lines = arena;
    (void)engine;
    for (uint32_t i = 0; i < load->timers; i++)
        lines[i].payload = 0;
    outcome->ops = load->ops;
    outcome->ns = touch(load, lines);
    outcome->tally = load->expected;
}

extern const struct engine engine_floor;
const struct engine engine_floor = {.name = "floor",
                                    .kind = KIND_REFERENCE,
                                    .object_size = sizeof(struct line),
                                    .lacks = ~(1u << FLOOR1 | 1u << FLOOR2 | 1u << FLOOR_CALL),
                                    .run = run};
