/* SPDX-License-Identifier: MIT
 *
 * What `tickwheel run` shows: the tasks' lines on standard output and, on a terminal, a status line that gives
 * way to them.
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Before any descriptor is opened: a standard one that is closed must not become another file's. `status`:
 * whether a status line is wanted; `commands`: whether other programs write to standard output, too, and cannot
 * erase it. */
void screen_begin(bool status, bool commands);

/* Whether there is a status line, to be shown now and then; shows it, and takes it off. From any thread. */
bool screen_live(void);
void screen_show(const char *text);
void screen_hide(void);

/* Prints a task's line. False when that failed, or had failed before. From any thread. */
bool screen_print(const char *line, size_t size);

/* Why printing failed, an errno; 0: it has not. */
int screen_error(void);

#endif
