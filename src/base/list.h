/* SPDX-License-Identifier: MIT
 *
 * Circular lists. The head of a list is a link like the links in the list; the head of an empty list points
 * at itself. An object that waits in a list contains a link, so nothing here allocates. `struct tw__link` is
 * declared in wheel.h, because a timer contains a link and wheel.h includes no other header of the library.
 */
#ifndef TW_BASE_LIST_H
#define TW_BASE_LIST_H

#include "assert.h"

#include <tickwheel/wheel.h>

static inline void tw__list_init(struct tw__link *list)
{
    list->next = list->prev = list;
}

static inline bool tw__list_empty(const struct tw__link *list)
{
    return list->next == list;
}

/* Puts a link before another link. Before the head means at the list's end. */
static inline void tw__list_insert(struct tw__link *link, struct tw__link *next)
{
    link->next = next;
    link->prev = next->prev;
    next->prev->next = link;
    next->prev = link;
}

static inline void tw__list_append(struct tw__link *list, struct tw__link *link)
{
    tw__list_insert(link, list);
}

/* Puts a link to the list's front. */
static inline void tw__list_prepend(struct tw__link *list, struct tw__link *link)
{
    struct tw__link *first = list->next;
    link->next = first;
    link->prev = list;
    first->prev = link;
    list->next = link;
}

/* Takes a link out of its list. Requires: the link is in a list. After that it is in no list, and
 * tw__link_listed() returns false. */
static inline void tw__list_remove(struct tw__link *link)
{
    TW_ASSERT(link->next != NULL && link->prev != NULL);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = link->prev = NULL;
}

/* Whether a link is in a list. Requires: the link was zeroed before its first use. */
static inline bool tw__link_listed(const struct tw__link *link)
{
    return link->next != NULL;
}

/* Points the neighbours of a link at its new place, after the caller has copied it to other memory. Requires:
 * `link` is the new place, and the link was in a list when it was copied. */
static inline void tw__link_relocated(struct tw__link *link)
{
    link->next->prev = link;
    link->prev->next = link;
}

/* Moves all links of one list to the end of another list. */
static inline void tw__list_move_all(struct tw__link *from, struct tw__link *to)
{
    if (tw__list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    tw__list_init(from);
}

#endif
