/* SPDX-License-Identifier: MIT
 *
 * Entries come from blocks, which are never given back while the window lives. An entry that is taken is found
 * by its number, so that a task whose job is under way is not filed once more.
 */
#include "entries.h"

#include <base/assert.h>

#include <stdlib.h>

enum {
    SHARE_MIN = 16, /* entries of a queue, however many queues there are */
    BLOCK = 512     /* entries of one allocation */
};

struct tw__store_block {
    struct tw__store_block *next;
    struct tw__store_entry entries[BLOCK];
};

static bool more_entries(struct tw__store_window *window)
{
    struct tw__store_block *block = calloc(1, sizeof *block);
    if (block == NULL)
        return false;
    block->next = window->blocks;
    window->blocks = block;
    for (int i = 0; i < BLOCK; i++)
        tw__list_append(&window->free, &block->entries[i].link);
    return true;
}

/* Whether an entry with this number is taken. */
static bool is_taken(const struct tw__store_window *window, uint64_t revision)
{
    const struct tw__store_entry *entry = window->taken[revision & window->taken_mask];
    while (entry != NULL && entry->revision != revision)
        entry = entry->next_taken;
    return entry != NULL;
}

void tw__store_entry_free(struct tw__store_window *window, struct tw__store_entry *entry)
{
    tw__store_entry_note(window, entry, false);
    entry->queue->loaded--;
    window->loaded--;
    tw__list_prepend(&window->free, &entry->link);
}

/* As many queues as there are now, or as the last move of the horizon has found. */
static uint64_t queues_of(const struct tw__store_window *window)
{
    uint64_t queues = window->queues.count > window->found ? window->queues.count : window->found;
    return queues > 0 ? queues : 1;
}

uint64_t tw__store_share_of(const struct tw__store_window *window)
{
    uint64_t share = window->max_loaded / queues_of(window);
    return share > SHARE_MIN ? share : SHARE_MIN;
}

bool tw__store_is_overfull(const struct tw__store_window *window)
{
    return window->loaded > 2 * tw__store_share_of(window) * queues_of(window);
}

bool tw__store_is_within(const struct tw__store_window *window, const struct tw__store_queue *queue,
                         uint64_t place_ms, uint64_t revision)
{
    if (queue == NULL || queue->whole)
        return place_ms <= window->horizon_ms;
    return tw__store_is_up_to(place_ms, revision, queue->horizon);
}

/* Mostly an entry stands behind all others, or before all others if it was taken and comes back. So its place
 * is searched for from both ends. */
void tw__store_entry_ready(struct tw__store_window *window, struct tw__store_entry *entry)
{
    struct tw__link *ready = &entry->queue->ready, *first = ready->next, *behind = ready;
    while (behind->prev != ready && tw__store_comes_before(entry, tw__store_entry_linked(behind->prev))) {
        if (tw__store_comes_before(entry, tw__store_entry_linked(first))) {
            behind = first;
            break;
        }
        first = first->next;
        behind = behind->prev;
    }
    tw__list_insert(&entry->link, behind);
    tw__store_ready_update(&window->ready, entry->queue);
}

/* In the wheel a task whose time has passed would wait for the next millisecond, and others, whose turn is
 * later, would be taken meanwhile. */
void tw__store_entry_file(struct tw__store_window *window, struct tw__store_entry *entry)
{
    if (entry->place_ms <= tw_wheel_now(window->wheel))
        tw__store_entry_ready(window, entry);
    else
        tw_wheel_add_at(window->wheel, &entry->timer, entry->place_ms);
}

int tw__store_entry_add(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t revision,
                        uint64_t place_ms)
{
    if (is_taken(window, revision))
        return 0;
    if (tw__list_empty(&window->free) && !more_entries(window))
        return tw__store_db_refuse(&window->db, TW_ENOMEM, "no memory");
    struct tw__store_entry *entry = tw__store_entry_linked(window->free.next);
    tw__list_remove(&entry->link);
    entry->queue = queue;
    entry->revision = revision;
    entry->place_ms = place_ms;
    queue->loaded++;
    window->loaded++;
    window->crowded |=
        tw__store_waiting_in(queue) > 2 * tw__store_share_of(window) && tw__store_is_overfull(window);
    tw__store_entry_file(window, entry);
    return 0;
}

static int drop_ready(void *arg, struct tw__store_queue *queue)
{
    struct tw__store_window *window = arg;
    while (!tw__list_empty(&queue->ready)) {
        struct tw__store_entry *entry = tw__store_entry_linked(queue->ready.next);
        tw__list_remove(&entry->link);
        tw__store_entry_free(window, entry);
    }
    tw__store_ready_update(&window->ready, queue);
    queue->horizon = (struct tw__store_place){0, 0};
    queue->whole = queue->hungry = false;
    return 0;
}

static void forget_queue(struct tw__store_window *window, struct tw__store_queue *queue)
{
    TW_ASSERT(queue->place == 0);
    window->paused_count -= queue->paused;
    tw__store_queues_remove(&window->queues, queue);
}

static int drop_empty(void *window, struct tw__store_queue *queue)
{
    if (queue->loaded == 0 && !queue->named)
        forget_queue(window, queue);
    return 0;
}

void tw__store_entries_drop(struct tw__store_window *window)
{
    tw__store_queues_each(&window->queues, drop_ready, window);
    for (struct tw__store_block *block = window->blocks; block != NULL; block = block->next)
        for (int i = 0; i < BLOCK; i++)
            if (tw_wheel_cancel(window->wheel, &block->entries[i].timer))
                tw__store_entry_free(window, &block->entries[i]);
    tw__store_queues_each(&window->queues, drop_empty, window);
    window->hungry = NULL;
    window->crowded = false;
}

void tw__store_entries_orphan(struct tw__store_window *window)
{
    for (uint64_t i = 0; i <= window->taken_mask; i++) {
        for (struct tw__store_entry *entry = window->taken[i]; entry != NULL; entry = entry->next_taken)
            entry->orphan = true;
        window->taken[i] = NULL;
    }
}

void tw__store_entries_fini(struct tw__store_window *window)
{
    for (struct tw__store_block *block = window->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
}

/* ---- queues ---------------------------------------------------------------------------------------------- */

struct tw__store_queue *tw__store_queue_add(struct tw__store_window *window, const char *name,
                                            const struct tw__store_callee *callee)
{
    struct tw__store_queue *queue = NULL;
    if (tw__store_ready_reserve(&window->ready, window->queues.count + 1))
        queue = tw__store_queues_add(&window->queues, name, callee);
    if (queue == NULL)
        tw__store_db_refuse(&window->db, TW_ENOMEM, "no memory");
    return queue;
}

void tw__store_queue_forget(struct tw__store_window *window, struct tw__store_queue *queue)
{
    if (queue->loaded == 0 && queue->whole && !queue->hungry && !queue->named)
        forget_queue(window, queue);
}
