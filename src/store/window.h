/* SPDX-License-Identifier: MIT
 *
 * The window: the tasks that are due soon, in a wheel whose ticks are the milliseconds of Unix time. Only the
 * runner's thread uses it.
 */
#ifndef TW_STORE_WINDOW_H
#define TW_STORE_WINDOW_H

#include "entries.h"

/* Makes a window for at most `max_taken` taken entries; the connection is not open yet. Returns: 0 or
 * TW_ENOMEM. */
int tw__store_window_init(struct tw__store_window *window, uint64_t max_loaded, uint64_t max_taken);
void tw__store_window_fini(struct tw__store_window *window);

/* Names the handler of a queue. Returns: 0 or TW_ENOMEM. */
int tw__store_window_name(struct tw__store_window *window, const char *name,
                          const struct tw__store_callee *callee);

/* Returns whether the file has to be looked at even if it has not changed: entries were used up, or the last
 * look has failed, or the horizon has to move, or the clock was set back. */
bool tw__store_window_wants(const struct tw__store_window *window, uint64_t now_ms);

/* Looks whether the file has changed, and loads the tasks that have come or whose time has come near. With
 * `whole` it looks even if SQLite says that nothing has changed. Returns: 0 or an error. */
int tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole);

/* Returns whether an entry may be due. */
bool tw__store_window_is_due(const struct tw__store_window *window, uint64_t now_ms);

/* Moves the entries that are due to the ready lists of their queues.
 * Requires: the file was looked at with this time, after the clock had shown it. */
void tw__store_window_expire(struct tw__store_window *window, uint64_t now_ms);

/* When the window has to be looked at next: an entry is due, or a lease of a program runs out, or the horizon
 * has to move. */
uint64_t tw__store_window_next(const struct tw__store_window *window);

/* Takes the earliest ready entry of the queues that may have another job; NULL: none, or the next look may load
 * an earlier one. */
struct tw__store_entry *tw__store_window_take(struct tw__store_window *window);

/* Ends the taking of an entry: it goes back to its place in its queue's ready list; or it has a new due time,
 * and waits for it; or it is no task any more. */
void tw__store_window_put_back(struct tw__store_window *window, struct tw__store_entry *entry);
void tw__store_window_again(struct tw__store_window *window, struct tw__store_entry *entry, uint64_t place_ms);
void tw__store_window_forget(struct tw__store_window *window, struct tw__store_entry *entry);

#endif
