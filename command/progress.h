/* SPDX-License-Identifier: MIT
 *
 * A progress bar for people who wait: on standard error, only if that is a terminal, and only once the
 * command has been at work for a moment. There is one terminal, so there is one bar and it needs no handle.
 */
#ifndef COMMAND_PROGRESS_H
#define COMMAND_PROGRESS_H

/* Names what is being done from here on. */
void progress_begin(const char *what);

/* Shows how much of it is done, 0 to 1; a negative number says that nobody knows. Calls may come often. */
void progress_show(double done);

/* Takes the bar off the terminal again. */
void progress_end(void);

#endif
