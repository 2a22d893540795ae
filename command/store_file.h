/* SPDX-License-Identifier: MIT
 *
 * The file of --store.
 */
#ifndef COMMAND_STORE_FILE_H
#define COMMAND_STORE_FILE_H

#include <tickwheel/store.h>

#include <base/error_text.h>
#include <stdbool.h>
#include <string.h>

/* Says at the end of a message about a lock whose wait that was, in place of the option of the library, which
 * the commands do not have. */
static inline void store_file_name_wait(char *message)
{
    static const char wait[] = ", the wait of tickwheel";
    size_t size = strlen(message), option = sizeof TW__BUSY_OPTION - 1;
    _Static_assert(sizeof wait <= sizeof TW__BUSY_OPTION, "it has room");
    if (size >= option && strcmp(message + size - option, TW__BUSY_OPTION) == 0)
        memcpy(message + size - option, wait, sizeof wait);
}

/* Opens the file. If it does not exist, makes it if `make`, and else refuses. `command`, for example
 * "tickwheel put", begins an error. Returns: NULL after it has printed an error. */
struct tw_store *store_file_open(const char *command, const char *path, bool make);

/* Does the same, and prints nothing. Returns: NULL, and the error in `message`. */
struct tw_store *store_file_try(const char *path, bool make, char message[TW_STORE_MESSAGE_SIZE]);

/* Runs the tasks of the file, as tw_store_start() does. While another process runs them, the run stands by. If
 * `tells`, standard error says so and names that process. Returns: 0 or an error. */
int store_file_stand_by(struct tw_store *store, const char *command, const char *path,
                        const struct tw_store_run_options *run, bool tells);

/* Prints the message of the call with the store that failed last. `undone` tells its effect: "the queue is not
 * paused". */
void store_file_complain(struct tw_store *store, const char *command, const char *path, const char *undone);

/* Looks up the time of the first task that waits, TW_NEVER if none does, and whether there is any task that is
 * not dead: ready tasks are looked for only if none waits. `queue` NULL: of all queues. Returns: 0 or an
 * error. */
int store_file_ahead(struct tw_store *store, const char *queue, uint64_t *next_ms, bool *any);

/* Returns how long a process leaves the file alone after a question that it began to ask then: ten times as
 * long as the answer has taken, so that questions about a file of a hundred thousand queues cost a tenth of a
 * thread's time. 0 if the clock was set back, or far ahead, meanwhile. */
uint64_t store_file_rest_ms(uint64_t begun_ms);

/* Returns whether the file is marked as restored; false if it cannot be read. */
bool store_file_is_marked(struct tw_store *store);

/* Says on standard error that the file is marked as restored, unless that would wait for a reader; once until
 * the mark has gone. *told: whether it has said so; false at first. */
void store_file_tell_of_mark(struct tw_store *store, const char *command, const char *path, bool *told);

#endif
