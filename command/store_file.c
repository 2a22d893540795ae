/* SPDX-License-Identifier: MIT */
#include "store_file.h"

#include "command.h"
#include "lines.h"
#include "printable.h"
#include "screen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHARE = 10, LONG_MS = 60000 };

struct tw_store *store_file_try(const char *path, bool make, char message[TW_STORE_MESSAGE_SIZE])
{
    struct tw_store_options options = {.flags = make ? 0 : TW_STORE_OPEN_EXISTING, .max_payload = LINES_MAX};
    struct tw_store *store;
    int error = tw_store_open(&store, path, &options, message, TW_STORE_MESSAGE_SIZE);
    if (error == 0)
        return store;
    bool told = error == TW_EREPLACED || error == TW_EINVAL; /* by the log at a path, or by the path itself */
    if (!make && !told && access(path, F_OK) != 0) {
        snprintf(message, TW_STORE_MESSAGE_SIZE, "%s%s", strerror(errno),
                 errno == ENOENT ? " (`tickwheel put` and `tickwheel run` make it)" : "");
        return NULL;
    }
    store_file_name_wait(message);
    return NULL;
}

struct tw_store *store_file_open(const char *command, const char *path, bool make)
{
    char message[TW_STORE_MESSAGE_SIZE];
    struct tw_store *store = store_file_try(path, make, message);
    if (store == NULL)
        complain("%s: --store %s: %s", command, path, message);
    return store;
}

void store_file_complain(struct tw_store *store, const char *command, const char *path, const char *undone)
{
    char message[TW_STORE_MESSAGE_SIZE];
    tw_store_message(store, message, sizeof message);
    store_file_name_wait(message);
    complain("%s: %s: %s: %s", command, path, undone, message);
}

static void see_one(void *arg, const struct tw_store_task *task)
{
    bool *any = arg;
    (void)task;
    *any = true;
}

int store_file_ahead(struct tw_store *store, const char *queue, uint64_t *next_ms, bool *any)
{
    int error = tw_store_next(store, queue, next_ms);
    *any = error != 0 || *next_ms != TW_NEVER;
    if (!*any)
        error = tw_store_scan(store, queue, &(struct tw_store_range){.count = 1}, see_one, any);
    return error;
}

int store_file_stand_by(struct tw_store *store, const char *command, const char *path,
                        const struct tw_store_run_options *run, bool tells)
{
    struct tw_store_run_options waits = *run;
    int error = tw_store_start(store, run);
    if (error != TW_EBUSY)
        return error;
    if (tells) {
        screen_hide();
        store_file_complain(store, command, path, "standing by");
    }
    waits.flags |= TW_STORE_RUN_STANDBY;
    return tw_store_start(store, &waits);
}

uint64_t store_file_rest_ms(uint64_t begun_ms)
{
    uint64_t took_ms = tw_store_now() - begun_ms; /* if the clock was set back: very much */
    return took_ms < LONG_MS ? SHARE * took_ms : 0;
}

bool store_file_is_marked(struct tw_store *store)
{
    bool marked;
    return tw_store_is_restored(store, &marked) == 0 && marked;
}

void store_file_tell_of_mark(struct tw_store *store, const char *command, const char *path, bool *told)
{
    bool marked = store_file_is_marked(store), tells = marked && !*told && screen_can_tell();
    *told = marked && (*told || tells);
    if (!tells)
        return;
    screen_hide();
    fprintf(stderr, "%s: %s is marked as restored: `tickwheel restore --store ", command, path);
    printable_word(path, stderr);
    fputs(" --go` lets its tasks run\n", stderr);
}
