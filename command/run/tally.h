/* SPDX-License-Identifier: MIT
 *
 * The numbers of a `tickwheel run --store`, for its summary.
 */
#ifndef COMMAND_TALLY_H
#define COMMAND_TALLY_H

#include "children.h"

#include <tickwheel/store.h>

#include <stdbool.h>
#include <stdio.h>

struct tally;

/* Makes a tally of a run that begins now. Returns NULL if there is no memory. */
struct tally *tally_new(void);
void tally_free(struct tally *tally);

/* The run begins only when the next call is counted: until then, another process runs the tasks. */
void tally_stand_by(struct tally *tally);

/* Returns how late the call is now, in microseconds. */
uint64_t tally_late_us(const struct tw_job *job);

/* Counts a call that was `late_us` late. Threads: any. */
void tally_call(struct tally *tally, const struct tw_job *job, uint64_t late_us);

/* Counts the end of a command. Threads: any. */
void tally_command(struct tally *tally, enum children_end end);

/* Returns the number of calls. Threads: any. */
uint64_t tally_calls(struct tally *tally);

/* Print the calls whose turn came while nobody ran them, the commands, and how late the other calls
 * were. Requires: no call is under way. */
void tally_print_overdue(const struct tally *tally, FILE *out);
void tally_print_commands(const struct tally *tally, FILE *out);
void tally_print_lateness(const struct tally *tally, FILE *out);

#endif
