/* SPDX-License-Identifier: MIT
 *
 * A progress bar on standard error. It appears only on a terminal, and only after the command has worked for
 * a moment (0.3 s). There is one terminal, so there is one bar, and it needs no handle.
 */
#ifndef COMMAND_PROGRESS_H
#define COMMAND_PROGRESS_H

/* Names the work that begins now, for example "reading". */
void progress_begin(const char *what);

/* Shows the part of the work that is done, 0 to 1; negative: not known. It may be called often. */
void progress_show(double done);

/* Erases the bar. */
void progress_end(void);

#endif
