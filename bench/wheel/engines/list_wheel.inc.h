/* SPDX-License-Identifier: MIT
 *
 * A plain hierarchical wheel of linked lists, without prefetching and without pacing: Tickwheel without its
 * hints. It is no peer, because nobody ships it. It shows how much the hints gain.
 *
 * The shape is that of Tickwheel's lower levels, 1024/512, 256/128, 256/128 and so on. A level holds the
 * current and the next slot of the level above, and a slot is refiled as a whole when it becomes the next
 * slot. The textbook's 256 x 4, in which a slot is refiled when it becomes the current slot, was measured
 * beside it and was slower. An occupancy bitmap finds the next slot, so that empty time costs little. The file
 * that includes this may define ENGINE_CALL, to have the calls inlined.
 */
#include "object.inc.h"

#include <string.h>

struct link {
    struct link *next, *prev;
};

struct list_timer {
    struct link node; /* next is NULL if not pending */
    uint64_t due;
};

struct object {
    struct list_timer timer;
    void (*fire)(struct object *object);
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct object) == 64, "one cache line");

enum { LEVELS = 5, SLOTS = 1024 + 256 + 256 + 128 + 128, AHEAD = 1 };
static const uint8_t shift[LEVELS + 1] = {0, 9, 16, 23, 29, 35};
static const uint16_t mask[LEVELS] = {1023, 255, 255, 127, 127};
static const uint16_t first_slot[LEVELS + 1] = {0, 1024, 1280, 1536, 1664, SLOTS};

static struct link heads[SLOTS];    /* the slots of all levels, one after the other */
static uint64_t bits[SLOTS / 64];   /* a bit for each slot that holds timers */
static uint32_t words;              /* a bit for each word of `bits` that is not 0 */
static uint64_t window_end[LEVELS]; /* the first tick that is beyond a level */
static uint64_t current;

static void set_windows(void)
{
    for (int l = 0; l < LEVELS; l++)
        window_end[l] = ((current >> shift[l + 1]) + 1 + AHEAD) << shift[l + 1];
}

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    (void)engine, (void)timers;
    for (int i = 0; i < SLOTS; i++)
        heads[i].next = heads[i].prev = &heads[i];
    memset(bits, 0, sizeof bits);
    words = 0;
    current = 0;
    set_windows();
}

static inline void engine_close(void)
{
}

static inline void engine_prepare(struct object *object)
{
    object->timer.node.next = NULL;
    object->fire = handle;
}

static inline uint32_t slot_of(int l, uint64_t tick)
{
    return first_slot[l] + ((uint32_t)(tick >> shift[l]) & mask[l]);
}

static ENGINE_CALL void engine_add(struct object *object, uint64_t deadline)
{
    int l = 0;
    while (deadline >= window_end[l])
        l++;
    uint32_t slot = slot_of(l, deadline);
    struct link *head = &heads[slot], *tail = head->prev, *link = &object->timer.node;
    object->timer.due = deadline;
    link->next = head;
    link->prev = tail;
    tail->next = link;
    head->prev = link;
    if (tail == head) {
        bits[slot >> 6] |= (uint64_t)1 << (slot & 63);
        words |= 1u << (slot >> 6);
    }
}

static void slot_emptied(uint32_t slot)
{
    if ((bits[slot >> 6] &= ~((uint64_t)1 << (slot & 63))) == 0)
        words &= ~(1u << (slot >> 6));
}

static ENGINE_CALL void engine_cancel(struct object *object)
{
    struct link *next = object->timer.node.next, *prev = object->timer.node.prev;
    if (next == NULL)
        return;
    object->timer.node.next = NULL;
    prev->next = next;
    next->prev = prev;
    if (prev == next)
        slot_emptied((uint32_t)(prev - heads));
}

static inline void engine_move(struct object *object, uint64_t deadline)
{
    engine_cancel(object);
    engine_add(object, deadline);
}

/* Takes the first timer out of a slot. Returns NULL if there is none. */
static inline struct object *take_first(uint32_t slot)
{
    struct link *head = &heads[slot], *first = head->next;
    if (first == head)
        return NULL;
    head->next = first->next;
    first->next->prev = head;
    first->next = NULL;
    if (head->next == head)
        slot_emptied(slot);
    return (struct object *)(void *)first;
}

static void refile(uint32_t slot)
{
    struct object *object;
    while ((object = take_first(slot)) != NULL)
        engine_add(object, object->timer.due);
}

/* The words that have bits for a level's slots, as a mask for `words`. */
static inline uint32_t words_of(int l)
{
    return (1u << first_slot[l + 1] / 64) - (1u << first_slot[l] / 64);
}

/* The first occupied tick of level 0 after the current tick, or UINT64_MAX if there is none. */
static inline uint64_t next_due(void)
{
    if ((words & words_of(0)) == 0)
        return UINT64_MAX;
    uint64_t tick = current + 1;
    for (;;) {
        uint32_t slot = (uint32_t)tick & mask[0];
        uint64_t found = bits[slot >> 6] >> (slot & 63);
        if (found != 0)
            return tick + (uint32_t)__builtin_ctzll(found);
        tick = (tick | 63) + 1;
    }
}

/* The next tick on which a slot of an upper level may have to be refiled. */
static inline uint64_t next_refile(void)
{
    for (int l = 1; l < LEVELS; l++)
        if ((words & words_of(l)) != 0)
            return ((current >> shift[l]) + 1) << shift[l];
    return UINT64_MAX;
}

static inline uint64_t next_stop(void)
{
    uint64_t due = next_due(), boundary = next_refile();
    return due < boundary ? due : boundary;
}

static void go_to(uint64_t tick)
{
    bool crossed = tick >> shift[1] != current >> shift[1];
    current = tick;
    if (!crossed)
        return;
    set_windows();
    for (int l = LEVELS - 1; l > 0; l--)
        if ((tick & (((uint64_t)1 << shift[l]) - 1)) == 0)
            refile(slot_of(l, tick + ((uint64_t)AHEAD << shift[l])));
}

static ENGINE_CALL void engine_advance(uint64_t tick)
{
    struct object *object;
    while (current < tick) {
        uint64_t stop = next_stop();
        go_to(stop < tick ? stop : tick);
        while ((object = take_first(slot_of(0, current))) != NULL)
            object->fire(object);
    }
}

static ENGINE_CALL uint64_t engine_next(void)
{
    return next_stop();
}

#include "../workloads.inc.h"
