/* SPDX-License-Identifier: MIT
 *
 * The sorted list is the red-black tree of libbsd. Its order is (deadline, moved or not, filing). A timer
 * that was moved may fire at any place among timers of the same deadline (wheel.h, "Order"). So it sorts
 * behind the timers that keep their filing order, and no timer may overtake the first timer of the tree.
 *
 * A timer that the wheel leaves out counts as one error. When its tick is settled, it leaves the tree and is
 * overdue. If it stayed in the tree, all timers fired after it would look out of order.
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

/* Not the _STATIC variants: they need a macro that libbsd does not define on Linux. */
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

/* Makes a timer idle, whether it was pending or overdue. */
static void take_out(struct model *model, struct entry *entry)
{
    if (entry->state == PENDING)
        RB_REMOVE(list, &model->pending, entry);
    else if (entry->state == OVERDUE)
        model->overdue--;
    entry->state = IDLE;
}

/* The trace cancels or re-files a timer. If it was overdue, it will not fire any more, so the wheel has
 * missed it. */
static void withdraw(struct model *model, struct entry *entry)
{
    if (entry->state == OVERDUE)
        model->verdict.unfired++;
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

/* True if a pending timer may fire now. Either it is the first timer of the tree, or it was moved and has the
 * same deadline as the first timer. */
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
    model->verdict.unfired += model->overdue;
    model->overdue = 0;
    return model->verdict;
}
