/* SPDX-License-Identifier: MIT
 *
 * The shape of a wheel: the rules for a valid geometry, and the memory that it takes. wheel.h has the presets.
 *
 * A geometry is a list of levels, from level 0 up. `slots` is the number of slots in the level's ring, `span`
 * the number of ticks per slot. From these follow, for each level below the top:
 *
 *     upper    the span one level up: ticks per slot of the next level
 *     steps    upper / span: slots of this level in one slot of the next level
 *     ahead    slots / steps - 1, rounded down: upper slots in the window besides the current one
 *
 *     TW_GEOMETRY_DEFAULT   level   slots    span    upper   steps   ahead
 *                               0    1024       1      512     512       1
 *                               1     256     512    65536     128       1
 *                               2     256   65536  8388608     128       1
 *
 * So a span must be at least two slots of the level below (steps >= 2), at most its whole ring (steps <=
 * slots), and a multiple of the span below. With steps == slots, ahead is 0: that is the textbook wheel, as
 * in TW_GEOMETRY_CLOCK. With steps == slots / 2, ahead is 1: one slot of lookahead, as above.
 *
 * The caller's memory holds these parts, one after the other:
 *
 *     struct tw_wheel | ring[0] ring[1] ... | level 0: slots, bitmaps, bounds | level 1: slots, bitmaps, ...
 *
 * The wheel starts on a cache line, and so do the slots of each level. Level 0 keeps bounds only on a
 * one-level wheel that does not grow (exact.c). A growing wheel starts with the levels of its geometry and
 * has room for the descriptors (`ring`) of 64 levels. The slots of a grown level come from the grow hook, in
 * a block of the same layout.
 *
 * Rejected: a geometry fixed at compile time. With powers of two a geometry in a table measured as fast: the
 * slot of a tick is one rotation and one mask away (tw__wheel_slot_for()). Other geometries divide.
 */
#include "internal.h"
#include "text.h"
#include "window.h"

enum { SLOT_ALIGNMENT = 64 }; /* slots start on a cache line */

/* ---- validity ------------------------------------------------------------------------------------------ */

/* Writes "`what` `value` on level `level`: must be `low` to `high`". Returns TW_EGEOMETRY. */
static int out_of_range(struct tw__wheel_text *text, const char *what, uint64_t value, uint32_t level,
                        uint64_t low, uint64_t high)
{
    tw__wheel_text_put(text, what);
    tw__wheel_text_put(text, " ");
    tw__wheel_text_number(text, value);
    tw__wheel_text_put(text, " on level ");
    tw__wheel_text_number(text, level);
    tw__wheel_text_put(text, ": must be ");
    tw__wheel_text_number(text, low);
    if (high != low) {
        tw__wheel_text_put(text, " to ");
        tw__wheel_text_number(text, high);
    }
    return TW_EGEOMETRY;
}

/* A span is a multiple of the span below: at least two slots of that level, and at most its whole ring. On
 * level 0 it is 1. Returns: 0; TW_EGEOMETRY, and the reason in `text`. */
static int check_span(const struct tw_geometry *g, uint32_t level, struct tw__wheel_text *text)
{
    uint64_t span = g->level[level].span;
    if (level == 0)
        return span == 1 ? 0 : out_of_range(text, "span", span, level, 1, 1);
    const struct tw_level *below = &g->level[level - 1];
    uint64_t high = tw__mul_saturating(below->span, below->slots);
    uint64_t low = tw__mul_saturating(below->span, 2);
    if (span >= low && span <= high && span % below->span == 0)
        return 0;
    out_of_range(text, "span", span, level, low, high);
    tw__wheel_text_put(text, ", a multiple of ");
    tw__wheel_text_number(text, below->span);
    return TW_EGEOMETRY;
}

static int check_levels(const struct tw_geometry *g, struct tw__wheel_text *text)
{
    if (g->levels >= 1 && g->levels <= TW_GEOMETRY_LEVELS_MAX)
        return 0;
    tw__wheel_text_put(text, "levels ");
    tw__wheel_text_number(text, g->levels);
    tw__wheel_text_put(text, ": must be 1 to ");
    tw__wheel_text_number(text, TW_GEOMETRY_LEVELS_MAX);
    return TW_EGEOMETRY;
}

static int check_overflow(const struct tw_geometry *g, struct tw__wheel_text *text)
{
    if (g->overflow <= TW_OVERFLOW_GROW)
        return 0;
    tw__wheel_text_put(text, "overflow ");
    tw__wheel_text_number(text, (uint64_t)g->overflow);
    tw__wheel_text_put(text, ": must be 0 (reject), 1 (rounds) or 2 (grow)");
    return TW_EGEOMETRY;
}

/* The geometry that a caller means. */
static const struct tw_geometry *meant(const struct tw_geometry *given)
{
    static const struct tw_geometry standard = TW_GEOMETRY_DEFAULT;
    return given != NULL ? given : &standard;
}

int tw_geometry_check(const struct tw_geometry *given, char *message, size_t size)
{
    const struct tw_geometry *g = meant(given);
    TW_ASSERT(message != NULL || size == 0);
    struct tw__wheel_text text;
    tw__wheel_text_init(&text, message, size);
    int error = check_levels(g, &text);
    if (error == 0)
        error = check_overflow(g, &text);
    for (uint32_t level = 0; error == 0 && level < g->levels; level++) {
        if (g->level[level].slots < 2 || g->level[level].slots > TW_GEOMETRY_SLOTS_MAX)
            error = out_of_range(&text, "slots", g->level[level].slots, level, 2, TW_GEOMETRY_SLOTS_MAX);
        else
            error = check_span(g, level, &text);
    }
    return error;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static uint32_t words_for(uint32_t bits)
{
    return (bits + 63) / 64;
}

static uint8_t stride_of(uint32_t level)
{
    return level == 0 ? TW__WHEEL_STRIDE_NEAR : TW__WHEEL_STRIDE_FAR;
}

size_t tw__wheel_ring_size(uint32_t level, uint32_t slots, bool bounded)
{
    uint32_t words = words_for(slots), bounds = bounded ? slots : 0;
    return round_up(((size_t)slots << stride_of(level)) +
                        ((size_t)words + words_for(words) + bounds) * sizeof(uint64_t),
                    SLOT_ALIGNMENT);
}

/* Whether a slot of this level may hold timers of different ticks, so that the wheel keeps a bound for it. */
static bool is_bounded(const struct tw_geometry *g, uint32_t level)
{
    return level > 0 || (g->levels == 1 && g->overflow != TW_OVERFLOW_GROW);
}

/* The number of level descriptors in a wheel's memory: a growing wheel may need all TW_GEOMETRY_LEVELS_MAX. */
static uint32_t room_for(const struct tw_geometry *g)
{
    return g->overflow == TW_OVERFLOW_GROW ? TW_GEOMETRY_LEVELS_MAX : g->levels;
}

static size_t header_size(uint32_t room)
{
    return round_up(sizeof(struct tw_wheel) + room * sizeof(struct tw__wheel_ring), SLOT_ALIGNMENT);
}

size_t tw_wheel_size(const struct tw_geometry *given)
{
    const struct tw_geometry *g = meant(given);
    if (tw_geometry_check(g, NULL, 0) != 0)
        return 0;
    size_t size = SLOT_ALIGNMENT - 1 + header_size(room_for(g));
    for (uint32_t level = 0; level < g->levels; level++)
        size += tw__wheel_ring_size(level, g->level[level].slots, is_bounded(g, level));
    return size;
}

/* log2 of a power of two; TW__WHEEL_NO_SHIFT for any other number. */
static uint8_t shift_of(uint64_t span)
{
    return (span & (span - 1)) == 0 ? (uint8_t)__builtin_ctzll(span) : TW__WHEEL_NO_SHIFT;
}

void *tw__wheel_ring_init(struct tw__wheel_ring *ring, uint32_t level, const struct tw_level *shape,
                          bool bounded, void *memory)
{
    uint32_t words = words_for(shape->slots);
    memset(ring, 0, sizeof *ring);
    ring->slots = memory;
    ring->stride = stride_of(level);
    ring->bits = (uint64_t *)(void *)(ring->slots + ((size_t)shape->slots << ring->stride));
    ring->sums = ring->bits + words;
    ring->bound = bounded ? ring->sums + words_for(words) : NULL;
    memset(memory, 0, tw__wheel_ring_size(level, shape->slots, bounded));
    ring->count = shape->slots;
    ring->mask = (shape->slots & (shape->slots - 1)) == 0 ? shape->slots - 1 : 0;
    ring->span = shape->span;
    ring->shift = shift_of(shape->span);
    ring->level = (uint8_t)level;
    ring->trail = (level == 0 ? TW__WHEEL_TRAIL_NEAR : TW__WHEEL_TRAIL_FAR) - 1;
    if (ring->mask != 0 && ring->shift != TW__WHEEL_NO_SHIFT) {
        /* The rotation brings low bits to the top. In a ring longer than the rest of time the mask would let
         * them in, so it is cut. */
        ring->reach = (uint32_t)(ring->mask & UINT64_MAX >> ring->shift) << ring->stride;
        ring->rotate = (ring->shift - ring->stride) & 63;
    }
    tw__wheel_list_init(&ring->drain, level << TW__WHEEL_ID_BITS | TW__WHEEL_ID_DRAIN);
    for (uint32_t i = 0; i < shape->slots; i++)
        tw__wheel_list_init(&tw__wheel_slot_at(ring, i)->list, level << TW__WHEEL_ID_BITS | i);
    return (char *)memory + tw__wheel_ring_size(level, shape->slots, bounded);
}

/* ---- how the levels relate ------------------------------------------------------------------------------- */

/* The span of the level above; on a growing top, the span that it will have. 0: no window is needed. */
static uint64_t upper_span(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    if (level + 1 < w->levels)
        return ring[1].span;
    if (w->overflow != TW_OVERFLOW_GROW || level + 1 == TW_GEOMETRY_LEVELS_MAX)
        return 0;
    uint32_t step = ring->count >= 4 ? ring->count / 2 : ring->count;
    uint64_t span = tw__mul_saturating(ring->span, step);
    return span == UINT64_MAX ? 0 : span;
}

/* True only when, at each tick, each window ends at or before the end of the window above it. A level without
 * lookahead counts as not nested. */
static bool windows_nest(const struct tw_wheel *w)
{
    for (uint32_t level = 0; level < w->levels; level++) {
        const struct tw__wheel_ring *ring = &w->ring[level];
        uint64_t above = level + 1 < w->levels ? ring[1].upper : 0;
        if (ring->upper != 0 && ring->ahead == 0)
            return false;
        if (above != 0 && tw__mul_saturating(ring->upper, ring->ahead) > above)
            return false;
    }
    return true;
}

/* Sets guess[h] to the lowest level whose window, at its widest, holds a delay of 4^h ticks. */
static void make_guesses(struct tw_wheel *w)
{
    uint32_t level = 0;
    for (uint32_t h = 0; h < sizeof w->guess; h++) {
        while (w->ring[level].upper != 0 && level + 1 < w->levels &&
               tw__mul_saturating(w->ring[level].upper, w->ring[level].ahead + (uint64_t)1) <= (uint64_t)1
                                                                                                   << 2 * h)
            level++;
        w->guess[h] = (uint8_t)level;
    }
}

void tw__wheel_relate(struct tw_wheel *w)
{
    for (uint32_t level = 0; level < w->levels; level++) {
        struct tw__wheel_ring *ring = &w->ring[level];
        ring->upper = upper_span(w, level);
        if (ring->upper != 0) /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): upper is a multiple of span */
            ring->ahead = (uint32_t)(ring->count / (ring->upper / ring->span)) - 1;
    }
    w->nested = windows_nest(w);
    make_guesses(w);
    tw__wheel_windows(w);
}

/* ---- init ---------------------------------------------------------------------------------------------- */

/* The ticks of one round of the top; UINT64_MAX when the top reaches the end of time. */
static uint64_t top_round(const struct tw_geometry *g)
{
    const struct tw_level *top = &g->level[g->levels - 1];
    return tw__mul_saturating(top->span, top->slots);
}

/* Whether finding the slot of a tick on the lowest two levels takes a division. */
static bool has_to_divide(const struct tw_geometry *g)
{
    uint64_t bits = 0;
    for (uint32_t level = 0; level < 2 && level < g->levels; level++)
        bits |= (g->level[level].slots & (g->level[level].slots - 1)) |
                (g->level[level].span & (g->level[level].span - 1));
    return bits != 0;
}

int tw_wheel_init(struct tw_wheel **wheel, void *memory, size_t size, const struct tw_geometry *given,
                  uint64_t now)
{
    TW_ASSERT(wheel != NULL && memory != NULL);
    const struct tw_geometry *g = meant(given);
    size_t needed = tw_wheel_size(g);
    if (needed == 0)
        return TW_EGEOMETRY;
    if (size < needed)
        return TW_ESIZE;
    struct tw_wheel *w = (void *)round_up((uintptr_t)memory, SLOT_ALIGNMENT);
    char *at = (char *)w + header_size(room_for(g));
    memset(w, 0, sizeof *w);
    w->cur = now;
    w->event = TW_NEVER;
    w->event_list = &w->due;
    w->levels = (uint8_t)g->levels;
    w->overflow = (uint8_t)g->overflow;
    w->range = g->overflow == TW_OVERFLOW_REJECT ? top_round(g) : UINT64_MAX;
    w->round = g->overflow == TW_OVERFLOW_GROW || top_round(g) == UINT64_MAX ? 0 : top_round(g);
    w->door = has_to_divide(g) || w->overflow == TW_OVERFLOW_GROW || w->round != 0;
    w->now = now;
    tw__wheel_list_init(&w->due, TW__WHEEL_ID_DUE);
    tw__wheel_list_init(&w->soon, TW__WHEEL_ID_DUE);
    tw__wheel_list_init(&w->next_drain, TW__WHEEL_ID_DUE);
    for (uint32_t level = 0; level < g->levels; level++)
        at = tw__wheel_ring_init(&w->ring[level], level, &g->level[level], is_bounded(g, level), at);
    tw__wheel_relate(w);
    for (uint32_t level = 0; level < g->levels; level++)
        w->ring[level].started = w->ring[level].head;
    *wheel = w;
    return 0;
}

void tw_wheel_fini(struct tw_wheel *w)
{
    tw__wheel_may_change(w);
    TW_ASSERT(!w->on_heap);
    for (uint32_t level = 0; level < w->levels; level++)
        if (w->ring[level].block != NULL)
            w->grow(w->grow_arg, w->ring[level].block, 0);
}

void tw__wheel_on_grow(struct tw_wheel *w, tw__grow_fn *grow, void *arg)
{
    tw__wheel_may_change(w);
    w->grow = grow;
    w->grow_arg = arg;
}

const char *tw_strerror(int error)
{
    switch (error) {
    case 0:
        return "no error";
#define CASE(name, value, text)                                                                                \
    case name:                                                                                                 \
        return text;
        TW_ERROR_TABLE(CASE)
#undef CASE
    default:
        return "unknown error";
    }
}
