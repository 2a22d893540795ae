/* SPDX-License-Identifier: MIT
 *
 * Our store with its defaults: each claim of a task is a commit, which is on the disk before the handler
 * begins.
 */
#include "side.h"

#include <stdio.h>
#include <string.h>
#include <tickwheel/store.h>

enum { BATCH = 1000, ID = 24, PAYLOAD = 100 };

static struct tw_store *store;
static const char *name = "task"; /* probes have names of their own: the pending tasks of the file stay */
static size_t filed;

static enum tw_answer run_job(void *arg, struct tw_job *job)
{
    (void)arg;
    called(job->due_ms * US_PER_MS);
    return TW_ANSWER_DONE;
}

static void open_store(const char *path)
{
    char message[TW_STORE_MESSAGE_SIZE];
    if (path == NULL || tw_store_open(&store, path, NULL, message, sizeof message) != 0)
        fail("store: the file does not open");
}

static void file_batch(const uint64_t *due_us, size_t n)
{
    static const char payload[PAYLOAD];
    struct tw_store_change changes[BATCH] = {0};
    char ids[BATCH][ID];
    for (size_t i = 0; i < n; i++) {
        int size = snprintf(ids[i], ID, "%s:%zu", name, filed++);
        changes[i].verb = TW_STORE_VERB_PUT;
        changes[i].task = (struct tw_store_delayed){.queue = "late",
                                                    .id = {ids[i], (size_t)size},
                                                    .due_ms = due_us[i] / US_PER_MS,
                                                    .payload = {payload, PAYLOAD}};
    }
    if (tw_store_apply(store, changes, n) != 0)
        fail("store: tasks were not put");
}

static void file_tasks(const uint64_t *due_us, size_t n)
{
    for (size_t i = 0; i < n; i += BATCH)
        file_batch(&due_us[i], n - i < BATCH ? n - i : BATCH);
}

static void start_store(void)
{
    if (tw_store_handle(store, "late", 0, run_job, NULL) != 0 || tw_store_start(store, NULL) != 0)
        fail("store: it does not run");
    name = "probe";
}

static void close_store(void)
{
    if (tw_store_stop(store) != 0)
        fail("store: an answer could not be written");
    tw_store_close(store);
}

const struct side store_side = {"store", US_PER_MS, open_store, file_tasks, start_store, close_store};
