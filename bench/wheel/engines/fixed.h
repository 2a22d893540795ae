/* SPDX-License-Identifier: MIT
 *
 * Included before the wheel's own sources when they are compiled a second time, with the default geometry
 * compiled in. Every name that the linker sees gets another name, and constants replace the arithmetic of a
 * run-time geometry. If a name is missing here, the linker finds it twice and reports an error.
 */
#ifndef TW_BENCH_FIXED_H
#define TW_BENCH_FIXED_H

#define tw_strerror fixed_strerror
#define tw_geometry_check fixed_geometry_check
#define tw_wheel_size fixed_wheel_size
#define tw_wheel_init fixed_wheel_init
#define tw_wheel_fini fixed_wheel_fini
#define tw__wheel_on_grow fixed__wheel_on_grow
#define tw_wheel_new fixed_wheel_new
#define tw_wheel_free fixed_wheel_free
#define tw_wheel_add_at fixed_wheel_add_at
#define tw_wheel_add_in fixed_wheel_add_in
#define tw_wheel_add_now fixed_wheel_add_now
#define tw_wheel_move_at fixed_wheel_move_at
#define tw_wheel_move_in fixed_wheel_move_in
#define tw_wheel_cancel fixed_wheel_cancel
#define tw_wheel_poll fixed_wheel_poll
#define tw_wheel_poll_budget fixed_wheel_poll_budget
#define tw_wheel_next_bound fixed_wheel_next_bound
#define tw_wheel_next_exact fixed_wheel_next_exact
#define tw_wheel_count fixed_wheel_count
#define tw_wheel_now fixed_wheel_now
#define tw_wheel_range fixed_wheel_range
#define tw_wheel_refiled fixed_wheel_refiled
#define tw_wheel_drain fixed_wheel_drain
#define tw_wheel_visit fixed_wheel_visit
#define tw_wheel_visit_until fixed_wheel_visit_until
#define tw__wheel_visit_budget fixed__wheel_visit_budget
#define tw_wheel_levels fixed_wheel_levels
#define tw_wheel_level fixed_wheel_level
#define tw_wheel_slot_count fixed_wheel_slot_count
#define tw_wheel_check fixed_wheel_check
#define tw_wheel_dump fixed_wheel_dump
#define tw__wheel_ring_init fixed__ring_init
#define tw__wheel_ring_size fixed__ring_size
#define tw__wheel_relate fixed__wheel_relate
#define tw__wheel_bound_filed fixed__bound_filed
#define tw__wheel_bound_lowered fixed__bound_lowered
#define tw__wheel_list_visit fixed__wheel_list_visit
#define tw__wheel_has fixed__wheel_has
#define tw__wheel_mark_long fixed__wheel_mark_long
#define tw__wheel_add_long fixed__wheel_add_long
#define tw__wheel_move_long fixed__wheel_move_long
#define tw__wheel_cancel_long fixed__wheel_cancel_long
#define tw__wheel_poll_long fixed__wheel_poll_long
#define tw__wheel_next_bound_long fixed__wheel_next_bound_long
#define tw__wheel_list_move fixed__wheel_list_move
#define tw__wheel_refile fixed__wheel_refile

#include "src/wheel/internal.h"

static inline uint64_t fixed_slot_number(const struct tw__wheel_ring *ring, uint64_t tick)
{
    static const uint8_t shift[] = {0, 9, 16, 23, 29, 35, 41, 47, 53, 59};
    return tick >> shift[ring->level];
}

static inline uint32_t fixed_slot_index(const struct tw__wheel_ring *ring, uint64_t number)
{
    static const uint16_t mask[] = {1023, 255, 255, 127, 127, 127, 127, 127, 127, 31};
    return (uint32_t)number & mask[ring->level];
}

static inline struct tw__wheel_slot *fixed_slot_for(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return tw__wheel_slot_at(ring, fixed_slot_index(ring, fixed_slot_number(ring, tick)));
}

TW__WHEEL_HOT struct tw__wheel_slot *fixed_slot_near(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return (struct tw__wheel_slot *)(void *)(ring->slots + ((tick & 1023) << TW__WHEEL_STRIDE_NEAR));
}

TW__WHEEL_HOT struct tw__wheel_slot *fixed_slot_far(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return (struct tw__wheel_slot *)(void *)(ring->slots + ((tick >> 9 & 255) << TW__WHEEL_STRIDE_FAR));
}

#define tw__wheel_slot_number fixed_slot_number
#define tw__wheel_slot_index fixed_slot_index
#define tw__wheel_slot_for fixed_slot_for
#define tw__wheel_slot_near fixed_slot_near
#define tw__wheel_slot_far fixed_slot_far

#endif
