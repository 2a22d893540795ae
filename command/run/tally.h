/* SPDX-License-Identifier: MIT
 *
 * The numbers of a run, for its summary.
 */
#ifndef COMMAND_TALLY_H
#define COMMAND_TALLY_H

#include "children.h"

#include <stdbool.h>
#include <stdio.h>

struct tally;

/* Returns NULL if there is no memory. */
struct tally *tally_new(void);
void tally_free(struct tally *tally);

/* Counts a call. `before_run`: it was due before the run began. Threads: any. */
void tally_call(struct tally *tally, const struct job *job, bool before_run);

/* Counts the end of a command. Threads: any. */
void tally_command(struct tally *tally, enum children_end end);

/* Returns the number of calls. Threads: any. */
uint64_t tally_calls(struct tally *tally);

/* Prints the calls that were due before the run, the commands if the run has `commands`, and how late the other
 * calls were. Requires: no call is under way. */
void tally_print(const struct tally *tally, bool commands, FILE *out);

#endif
