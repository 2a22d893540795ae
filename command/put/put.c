/* SPDX-License-Identifier: MIT
 *
 * tickwheel put: puts tasks into a file, one from the command line or many from lines. A line counts when the
 * commit that has it has returned.
 */
#include "batch.h"
#include "clock.h"
#include "command.h"
#include "delayed.h"
#include "lines.h"
#include "printable.h"
#include "put_options.h"
#include "reader.h"
#include "store_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char COMMAND[] = "tickwheel put";

struct put {
    struct put_options options;
    struct tw_store *store;
    struct reader reader;
    struct batch batch;
};

/* ---- one task -------------------------------------------------------------------------------------------- */

/* Joins the words by blanks. Returns NULL if there is no memory. */
static char *join(int count, char **words)
{
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    char *text = malloc(size), *to = text;
    for (int i = 0; i < count && text != NULL; i++)
        to += sprintf(to, "%s%s", i > 0 ? " " : "", words[i]);
    if (text != NULL)
        *to = '\0';
    return text;
}

/* Says that the condition has kept the task. */
static int kept(struct tw_bytes id)
{
    fputs("tickwheel put: the task ", stderr);
    printable_write(id, true, SIZE_MAX, stderr);
    fputs(" was not put: --condition has kept everything as it was\n", stderr);
    return COMMAND_WRONG;
}

static int put_task(const struct put *put, const struct line *line, char *id)
{
    struct tw_store_delayed task;
    const char *error = delayed_make(&put->options.task, line, &task);
    task.id = (struct tw_bytes){id, printable_read(id)};
    if (error == NULL && (task.id.size == 0 || task.id.size > TW_STORE_ID_MAX)) {
        complain("%s: id has %zu bytes: expected 1 to %d", COMMAND, task.id.size, TW_STORE_ID_MAX);
        return COMMAND_INPUT;
    }
    if (error == NULL && task.payload.size > LINES_MAX) {
        complain("%s: payload has %zu bytes: expected at most %d", COMMAND, task.payload.size, LINES_MAX);
        return COMMAND_INPUT;
    }
    if (error != NULL) {
        complain("%s: %s", COMMAND, error);
        return COMMAND_INPUT;
    }
    bool made;
    if (tw_store_put(put->store, &task, put->options.task.conditions, &made) != 0) {
        store_file_complain(put->store, COMMAND, put->options.store, "the task is not in the file");
        return COMMAND_WRONG;
    }
    return made ? COMMAND_GOOD : kept(task.id);
}

/* Puts the task of the words WHEN ID [PAYLOAD...]. */
static int put_words(const struct put *put, int count, char **words)
{
    struct line line = {.kind = put->options.period_ns > 0 ? LINE_EVERY : LINE_TASK,
                        .period_ns = put->options.period_ns,
                        .times = put->options.times,
                        .id = ""};
    const char *error = when_parse(words[0], &line);
    if (error != NULL) {
        complain("%s: %s, found \"%s\"", COMMAND, error, words[0]);
        return COMMAND_INPUT;
    }
    if (count < 2) {
        complain("%s: expected an ID after the time %s", COMMAND, words[0]);
        return COMMAND_INPUT;
    }
    char *text = join(count - 2, words + 2);
    if (text == NULL) {
        complain("%s: there is no memory", COMMAND);
        return COMMAND_WRONG;
    }
    line.payload = text;
    int status = put_task(put, &line, words[1]);
    free(text);
    return status;
}

/* ---- many tasks ------------------------------------------------------------------------------------------ */

/* Commits the lines that were read, and acknowledges them. */
static bool commit(struct put *put)
{
    bool had = put->batch.count > 0;
    if (!batch_commit(&put->batch))
        return false;
    if (had && put->options.ack) {
        printf("%" PRIu64 "\n", put->batch.tally.lines);
        fflush(stdout);
    }
    return true;
}

static const char *take(void *arg, const struct line *line)
{
    struct put *put = arg;
    uint64_t before = put->batch.tally.lines;
    if (line->kind == LINE_WAIT) {
        if (commit(put))
            sleep_ns(line->time_ns);
        return NULL;
    }
    const char *error = batch_add(&put->batch, line);
    if (put->batch.tally.lines > before && put->options.ack)
        printf("%" PRIu64 "\n", put->batch.tally.lines);
    return error;
}

static int idle(void *arg)
{
    commit(arg);
    return -1;
}

static bool stopping(void *arg)
{
    const struct put *put = arg;
    return put->batch.failed;
}

static void print_summary(const struct put *put)
{
    const struct batch_tally *tally = &put->batch.tally;
    fprintf(stderr, "tasks put: %" PRIu64 "; moved: %" PRIu64 ", cancelled: %" PRIu64, tally->put, tally->moved,
            tally->cancelled);
    if (tally->kept > 0)
        fprintf(stderr, "; kept as they were, as --condition says: %" PRIu64, tally->kept);
    if (tally->unknown > 0)
        fprintf(stderr, "\nlines without effect: %" PRIu64 " (move or cancel of an id without a pending task)",
                tally->unknown);
    if (put->reader.bad_lines > 0)
        fprintf(stderr, "\nlines skipped: %" PRIu64 " (malformed, see above; correct and put them again)",
                put->reader.bad_lines);
    fputc('\n', stderr);
}

static int put_lines(struct put *put, int count, char **paths)
{
    bool read = true;
    put->reader = (struct reader){.command = COMMAND,
                                  .wake = -1,
                                  .strict = put->options.strict,
                                  .take = take,
                                  .idle = idle,
                                  .stopping = stopping,
                                  .arg = put};
    if (!batch_init(&put->batch, put->store, &put->options.task)) {
        complain("%s: there is no memory", COMMAND);
        return COMMAND_WRONG;
    }
    if (count == 0)
        read = reader_read(&put->reader, "-", NULL);
    for (int i = 0; i < count && !put->batch.failed && !put->reader.stopped; i++)
        read &= reader_read(&put->reader, paths[i], NULL);
    bool good = commit(put);
    if (!good)
        batch_complain(&put->batch, COMMAND, put->options.store, "");
    if (!put->options.quiet)
        print_summary(put);
    batch_fini(&put->batch);
    if (!read || put->reader.stopped)
        return COMMAND_INPUT;
    return good && put->reader.bad_lines == 0 ? COMMAND_GOOD : COMMAND_WRONG;
}

/* A time whose + or @ was forgotten would be read as the name of a file. */
static bool is_bare_time(const char *word)
{
    if (*word < '0' || *word > '9' || access(word, F_OK) == 0)
        return false;
    complain("%s: %s: cannot be read: %s; a time begins with + or @", COMMAND, word, strerror(errno));
    return true;
}

int command_put(int argc, char **argv)
{
    static struct put put;
    int status = put_options_parse(argc, argv, &put.options);
    if (status >= 0)
        return status;
    const char *first = optind < argc ? argv[optind] : "";
    if (is_bare_time(first))
        return COMMAND_INPUT;
    put.store = store_file_open(COMMAND, put.options.store, true);
    if (put.store == NULL)
        return COMMAND_WRONG;
    if (*first == '+' || *first == '@')
        status = put_words(&put, argc - optind, argv + optind);
    else
        status = put_lines(&put, argc - optind, argv + optind);
    tw_store_close(put.store);
    return status;
}
