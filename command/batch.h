/* SPDX-License-Identifier: MIT
 *
 * Lines of tasks on their way into a file. A batch collects lines as they come, and writes them in one commit.
 */
#ifndef COMMAND_BATCH_H
#define COMMAND_BATCH_H

#include "task_line.h"
#include "task_options.h"

#include <tickwheel/store.h>

/* Numbers of lines that are in the file. */
struct batch_tally {
    uint64_t lines; /* all lines */
    uint64_t put;   /* tasks that were put */
    uint64_t kept;  /* tasks that --condition kept as they were */
    uint64_t moved, cancelled;
    uint64_t unknown; /* moves and cancels of an id without a pending task */
};

struct batch {
    struct tw_store *store;
    const struct task_options *options;
    struct tw_store_change *changes; /* their ids and payloads are in `bytes` */
    char *bytes;
    size_t count, used;
    bool (*again)(int error); /* asks whether to try a failed commit once more; NULL: never */
    bool failed;              /* a commit has failed for good: no more lines are taken */
    struct batch_tally tally;
};

/* Makes an empty batch, which gives up at the first error. Both arguments must outlive it. Returns false if
 * there is no memory. */
bool batch_init(struct batch *batch, struct tw_store *store, const struct task_options *options);

/* Frees the batch. Lines that were not committed are lost. */
void batch_fini(struct batch *batch);

/* Adds a line of the kinds TASK, EVERY, MOVE or CANCEL. If the batch is full, it commits first.
 * Returns: NULL, or the error as a phrase. Sets `failed` if the commit failed. */
const char *batch_add(struct batch *batch, const struct line *line);

/* Commits the lines: when it returns, they are in the file. Returns: false if that failed. Then none of the
 * lines since the last commit is in the file, and tw_store_message() says why. */
bool batch_commit(struct batch *batch);

/* Says which lines are not in the file, after a commit that has failed. `before` begins the sentence, after the
 * names of the command and of the file. */
void batch_complain(const struct batch *batch, const char *command, const char *path, const char *before);

#endif
