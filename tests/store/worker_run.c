/* SPDX-License-Identifier: MIT
 *
 * The library's part in the crowd of test_workers.
 *
 *     worker_run FILE run CALLS    runs all queues until its input ends, and notes each call in CALLS
 *     worker_run FILE change       makes the changes of its input, and replies a line to each:
 *                                  "put ID PAYLOAD DUE_MS", "move ID DUE_MS", "cancel ID"
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORK = 200000 }; /* steps of a handler, so that a process may be stopped in the middle */

static int calls; /* the file, which is opened once */

static enum tw_answer note(void *arg, struct tw_job *job)
{
    char line[64];
    (void)arg;
    int size = snprintf(line, sizeof line, "%.*s\n", (int)job->payload.size, (const char *)job->payload.data);
    if (write(calls, line, (size_t)size) != size)
        _exit(3);
    for (volatile int step = 0; step < WORK; step++)
        ;
    return (job->revision + job->attempt) % 4 == 0 ? TW_ANSWER_FAILED : TW_ANSWER_DONE;
}

static int run(struct tw_store *store, const char *path)
{
    struct tw_store_run_options options = {.workers = 2, .flags = TW_STORE_RUN_STANDBY};
    char byte;
    calls = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (calls < 0 || tw_store_handle(store, NULL, 0, note, NULL) != 0 || tw_store_start(store, &options) != 0)
        return 3;
    while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
        errno = 0;
    return 0;
}

static int change_one(struct tw_store *store, const char *verb, const char *id, const char *payload,
                      uint64_t due_ms)
{
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text(id),
                                    .due_ms = due_ms,
                                    .payload = tw_text(payload),
                                    .tries = 5,
                                    .backoff_ms = 1};
    if (strcmp(verb, "put") == 0)
        return store_put(store, &task, 0);
    if (strcmp(verb, "move") == 0)
        return store_move_at(store, tw_store_named("q", id), due_ms, 0);
    enum tw_cancel found;
    return tw_store_cancel(store, tw_store_named("q", id), &found);
}

static int change(struct tw_store *store)
{
    char line[256], verb[16], id[64], payload[64] = "";
    uint64_t due_ms = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        bool good = sscanf(line, "put %63s %63s %" SCNu64, id, payload, &due_ms) == 3;
        strcpy(verb, "put");
        if (!good && sscanf(line, "%15s %63s %" SCNu64, verb, id, &due_ms) < 2)
            return 2;
        printf("%d\n", change_one(store, verb, id, payload, due_ms));
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct tw_store *store;
    char text[TW_STORE_MESSAGE_SIZE];
    if (argc < 3)
        return 2;
    if (tw_store_open(&store, argv[1], &patient, text, sizeof text) != 0) {
        fprintf(stderr, "worker_run: %s\n", text);
        return 1;
    }
    int status = argc > 3 ? run(store, argv[3]) : change(store);
    tw_store_close(store);
    return status;
}
