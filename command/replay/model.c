/* SPDX-License-Identifier: MIT
 *
 * The sorted list is the red-black tree of libbsd. Its order is (deadline, moved or not, filing): a timer
 * that was moved may take its turn among equals at any time (wheel.h, "Order"), so it sorts behind those that
 * keep their filing order, and the first of the tree is always one that nothing may overtake.
 *
 * A timer that the wheel passes over counts once, for itself: when its tick is settled it leaves the tree and
 * is overdue. If it stayed, everything fired after it would look out of order.
 */
#include "model.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdlib.h>

enum state { IDLE, PENDING, OVERDUE };

struct entry {
    RB_ENTRY(entry) node;
    uint64_t deadline, filing;
    enum state state;
    bool moved;
};

RB_HEAD(list, entry);

struct model {
    struct list pending;
    uint64_t filings, overdue;
    struct verdict verdict;
    struct entry entries[];
};

static int compare(const struct entry *a, const struct entry *b)
{
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline ? -1 : 1;
    if (a->moved != b->moved)
        return a->moved ? 1 : -1;
    return (a->filing > b->filing) - (a->filing < b->filing);
}

/* The static variants need a macro that libbsd leaves out on Linux. */
RB_PROTOTYPE(list, entry, node, compare)
RB_GENERATE(list, entry, node, compare)

struct model *model_new(uint32_t ids)
{
    return calloc(1, sizeof(struct model) + ids * sizeof(struct entry));
}

void model_free(struct model *model)
{
    free(model);
}

/* Ends the wait of a timer, wherever it stands. */
static void take_out(struct model *model, struct entry *entry)
{
    if (entry->state == PENDING)
        RB_REMOVE(list, &model->pending, entry);
    else if (entry->state == OVERDUE)
        model->overdue--;
    entry->state = IDLE;
}

/* Taken back by the user: if it was overdue, it will never fire, so the wheel has missed it. */
static void withdraw(struct model *model, struct entry *entry)
{
    if (entry->state == OVERDUE)
        model->verdict.missed++;
    take_out(model, entry);
}

void model_file(struct model *model, uint32_t id, uint64_t now, uint64_t deadline)
{
    struct entry *entry = &model->entries[id];
    uint64_t effective = deadline > now ? deadline : now + 1;
    bool move = entry->state == PENDING;
    if (move && entry->deadline == effective)
        return;
    withdraw(model, entry);
    entry->deadline = effective;
    entry->filing = model->filings++;
    entry->moved = move;
    entry->state = PENDING;
    RB_INSERT(list, &model->pending, entry);
}

void model_cancel(struct model *model, uint32_t id)
{
    withdraw(model, &model->entries[id]);
}

/* True when a pending timer is one that may fire now: its deadline is the earliest, and no timer that keeps its
 * filing order stands before it, unless this one may be taken at any time among its equals. */
static bool in_order(struct model *model, const struct entry *entry)
{
    const struct entry *first = RB_MIN(list, &model->pending);
    return entry == first || (entry->moved && entry->deadline == first->deadline);
}

void model_fired(struct model *model, uint32_t id, uint64_t tick)
{
    struct entry *entry = &model->entries[id];
    struct verdict *verdict = &model->verdict;
    if (entry->state == IDLE || (entry->state == PENDING && tick < entry->deadline))
        verdict->early++;
    else if (tick > entry->deadline)
        verdict->late++;
    if (entry->state == PENDING && !in_order(model, entry))
        verdict->out_of_order++;
    take_out(model, entry);
}

void model_settled(struct model *model, uint64_t tick)
{
    struct entry *first;
    while ((first = RB_MIN(list, &model->pending)) != NULL && first->deadline <= tick) {
        RB_REMOVE(list, &model->pending, first);
        first->state = OVERDUE;
        model->overdue++;
    }
}

struct verdict model_finish(struct model *model)
{
    model_settled(model, UINT64_MAX);
    model->verdict.missed += model->overdue;
    model->overdue = 0;
    return model->verdict;
}
