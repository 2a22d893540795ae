/* SPDX-License-Identifier: MIT
 *
 * The output of commands that run tasks: lines of tasks, output of commands and, on a terminal, a
 * status line. The status line is erased before anything else is printed.
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Prepares the output. Requires: no descriptor has been opened yet. If a standard descriptor is closed, it
 * opens it, so that no other file gets that number. `status`: a status line is wanted. `commands`: other
 * programs write to standard output, too; they cannot erase the status line, so a terminal that they write to
 * gets none. */
void screen_begin(bool status, bool commands);

/* Returns whether there is a status line. Threads: any. */
bool screen_live(void);

/* Show the status line, and erase it. Threads: any. */
void screen_show(const char *text);
void screen_hide(void);

/* Prints a task's line. Returns false if that fails, or has failed before. Threads: any. */
bool screen_print(const char *line, size_t size);

/* Writes a part of the output of a command to standard output or standard error. If that cannot be written, the
 * part is lost. Threads: any. */
void screen_pass(int fd, const char *bytes, size_t size);

/* Returns the errno with which printing failed; 0 if it has not failed. */
int screen_error(void);

#endif
