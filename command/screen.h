/* SPDX-License-Identifier: MIT
 *
 * The output of commands that run tasks: lines of tasks, output of commands and, on a terminal, a
 * status line. The status line is erased before anything else is printed.
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <tickwheel/task.h>

#include <stdbool.h>

/* Prepares the output. `status`: a status line is wanted. `commands`: other programs write to standard output,
 * too; they cannot erase the status line, so a terminal that they write to gets none. `wait`: a message on
 * stderr (stdio.h) waits for a reader as screen_print(); else it is left out if it would wait. */
void screen_begin(bool status, bool commands, bool wait);

/* Returns whether there is a status line. Threads: any. */
bool screen_live(void);

/* Show the status line, unless we are in the background of the terminal, and erase it. Threads: any. */
void screen_show(const char *text);
void screen_hide(void);

/* Prints a task's line. If nobody reads standard output, it waits. Returns false if printing fails, or has
 * failed before. Threads: any. */
bool screen_print(struct tw_bytes line);

/* The process is to end: from now on nobody waits longer than a second for a reader of the output.
 * Threads: any, and signal handlers. */
void screen_quit(void);

/* Writes to standard output, and waits as screen_print(). Returns 0, or an error for screen_reason(). */
int screen_write(struct tw_bytes bytes);

/* Begins a round of screen_pass(). An output that has not taken a part as a whole takes no more in this round.
 * So a round waits for a moment for each output, however many commands write to a slow terminal. */
void screen_next_round(void);

/* Returns whether an output takes bytes at once: a pipe PIPE_BUF, a terminal one at least. After screen_quit()
 * it is true: then bytes for which there is no room are lost. */
bool screen_has_room(int fd);

/* Writes a part of the output of a command, at most PIPE_BUF bytes, to standard output or standard error. It
 * does not wait for a reader. Returns how many bytes have gone: all of them if they cannot be written, or after
 * screen_quit(). Threads: any. */
size_t screen_pass(int fd, struct tw_bytes bytes);

/* Returns whether a message of ours on standard error would not wait for a reader. Threads: any. */
bool screen_can_tell(void);

/* The last messages follow. If nobody reads standard error for a second, they are lost. */
void screen_last_words(void);

/* Returns the error with which printing failed, for screen_reason(); 0 if it has not failed. */
int screen_error(void);

/* Returns the text of an error. */
const char *screen_reason(int error);

#endif
