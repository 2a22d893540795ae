/* SPDX-License-Identifier: MIT
 *
 * Reads a file of tasks. The file says what waits, but not how many calls there have been: only the process
 * that runs the tasks knows that. So there are no rates, and there is no lateness.
 *
 * To count a queue takes as long as it has tasks, ten million in about a second. The numbers are counted
 * again only when ten times as long has passed as the last count took. So a reading takes a tenth of a core at
 * most, and a file of ten million tasks shows counts that are some seconds old.
 *
 * The file may be replaced, for example by a backup. A reading that fails opens the path anew. But if the log
 * of the old file lies there still, SQLite would take it for the log of the new file, and damage that one. So
 * the path is not opened before the log has gone, or is empty. The log stays open here meanwhile: no other file
 * can have its number then.
 */
#include "clock.h"
#include "command.h"
#include "feed.h"
#include "printable.h"
#include "queues.h"
#include "store_file.h"

#include <tickwheel/version.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILED_LOOK = 100 }; /* of each queue that is listed: tasks that are looked at for a failure */
enum { SHARE = 10, STEP_MS = 1000, MS_NS = 1000000, PATH_SHOWN = 200 };

struct store_feed {
    struct feed feed;
    const struct top_options *options;
    struct tw_store *store;    /* NULL: the next reading opens the file */
    struct stat file;          /* the file that was opened last */
    int log;                   /* its log; -1: none */
    struct reading last;       /* the last reading that was counted */
    struct queues queues;      /* its queues, whose names it has */
    uint64_t counted_ns, took; /* when that was, and how long it took; 0: never */
    uint64_t held;             /* the ready tasks of paused queues */
    uint64_t looked, failed;   /* tasks that were looked at, and those of them whose last attempt has failed */
};

/* ---- the file -------------------------------------------------------------------------------------------- */

static bool fail(const struct store_feed *feed, const char *message, char error[FEED_ERROR])
{
    snprintf(error, FEED_ERROR, "%.120s: %.180s", feed->options->store, message);
    return false;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Returns the path of the log, which lies beside the file and not beside a link to it; free() frees it. NULL:
 * there is no file, or no memory. */
static char *log_path(const struct store_feed *feed)
{
    char *real = realpath(feed->options->store, NULL), *path = NULL;
    if (real != NULL && asprintf(&path, "%s-wal", real) < 0)
        path = NULL;
    free(real);
    return path;
}

static void keep_log(struct store_feed *feed)
{
    char *path = log_path(feed);
    if (feed->log >= 0)
        close(feed->log);
    bool kept = path != NULL && stat(feed->options->store, &feed->file) == 0;
    feed->log = kept ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    free(path);
}

/* Whether another file is at the path now, beside the log of the last one. */
static bool has_old_log(const struct store_feed *feed)
{
    struct stat file, log, kept;
    char *path = log_path(feed);
    bool has = path != NULL && feed->log >= 0 && fstat(feed->log, &kept) == 0 &&
               stat(feed->options->store, &file) == 0 && !is_same(&file, &feed->file) &&
               stat(path, &log) == 0 && is_same(&log, &kept) && log.st_size > 0;
    free(path);
    return has;
}

static bool open_file(struct store_feed *feed, char error[FEED_ERROR])
{
    char message[TW_STORE_MESSAGE_SIZE];
    if (has_old_log(feed))
        return fail(
            feed, "the file was replaced, and its log was not: move its -wal and -shm with it, or remove them",
            error);
    feed->store = store_file_try(feed->options->store, false, message);
    if (feed->store == NULL)
        return fail(feed, message, error);
    keep_log(feed);
    return true;
}

/* After a reading that has failed. */
static bool close_file(struct store_feed *feed, char error[FEED_ERROR])
{
    char message[TW_STORE_MESSAGE_SIZE];
    tw_store_message(feed->store, message, sizeof message);
    tw_store_close(feed->store);
    feed->store = NULL;
    feed->took = 0;
    return fail(feed, message, error);
}

/* ---- counting -------------------------------------------------------------------------------------------- */

static bool add_forecast(const struct store_feed *feed, const char *queue, struct reading *reading)
{
    uint64_t counts[READING_STEPS];
    if (tw_store_forecast(feed->store, queue, STEP_MS, READING_STEPS, counts) != 0)
        return false;
    for (int i = 0; i < READING_STEPS; i++)
        reading->forecast[i] += counts[i];
    return true;
}

/* Whether a queue comes before another one in a list. */
typedef bool is_first(const struct queue_seen *seen, const struct queue_seen *other);

static bool is_larger(const struct queue_seen *seen, const struct queue_seen *other)
{
    return seen->tasks > other->tasks;
}

/* Whether the pause of a queue keeps more ready tasks back than that of another one. */
static bool keeps_more(const struct queue_seen *seen, const struct queue_seen *other)
{
    return seen->ready != other->ready ? seen->ready > other->ready : is_larger(seen, other);
}

/* Puts a queue into a sorted list, which keeps the first ones. */
static void list_queue(struct queue_seen list[READING_QUEUES], size_t *count, const struct queue_seen *seen,
                       is_first *before)
{
    size_t at = *count < READING_QUEUES ? (*count)++ : READING_QUEUES;
    for (; at > 0 && before(seen, &list[at - 1]); at--)
        if (at < READING_QUEUES)
            list[at] = list[at - 1];
    if (at < READING_QUEUES)
        list[at] = *seen;
}

/* For one reading. */
struct counting {
    struct store_feed *feed;
    struct reading *reading;
    bool good;
};

static void count_queue(void *arg, const struct tw_store_load *load)
{
    const struct counting *counting = arg;
    struct reading *reading = counting->reading;
    const char *name = queues_add(&counting->feed->queues, load->queue);
    if (name == NULL)
        return;
    struct queue_seen seen = {.tasks = load->tasks,
                              .waiting = load->waiting,
                              .ready = load->ready,
                              .leased = load->leased,
                              .dead = load->dead,
                              .paused = load->paused,
                              .next_ms = load->next_ms == TW_NEVER ? ABSENT : load->next_ms};
    reading_name(&seen, tw_text(name));
    reading->count[COUNT_TASKS] += seen.tasks;
    reading->count[COUNT_WAITING] += seen.waiting;
    reading->count[COUNT_READY] += seen.ready;
    counting->feed->held += seen.paused ? seen.ready : 0;
    reading->count[COUNT_LEASED] += seen.leased;
    reading->count[COUNT_DEAD] += seen.dead;
    list_queue(reading->seen, &reading->queues, &seen, is_larger);
    if (seen.paused && reading->tells_pauses) {
        reading->count[COUNT_PAUSED_QUEUES]++;
        list_queue(reading->paused, &reading->pauses, &seen, keeps_more);
    }
}

static void see_failure(void *arg, const struct tw_store_task *task)
{
    struct store_feed *feed = arg;
    uint32_t under_way = task->state == TW_STATE_LEASED;
    feed->looked++;
    feed->failed += task->error != NULL || (!task->replaced && task->attempt > under_way);
}

/* Counts the tasks that have failed, among the first ones of the largest queues: no index has them, so a look
 * at all of them would take long. */
static bool count_failed(struct store_feed *feed, const struct reading *reading)
{
    struct tw_store_range first = {.count = FAILED_LOOK};
    bool good = true;
    for (size_t i = 0; i < reading->queues && good; i++)
        good = tw_store_scan(feed->store, reading->seen[i].whole.data, &first, see_failure, feed) == 0;
    return good;
}

static void look_at_queues(void *arg)
{
    struct counting *counting = arg;
    struct store_feed *feed = counting->feed;
    const struct queues *queues = &feed->queues;
    counting->good =
        tw_store_loads(feed->store, feed->options->queue, count_queue, counting) == 0 && !queues->lost;
    for (size_t i = 0; i < queues->count && counting->good; i++)
        counting->good = add_forecast(feed, queues->name[i], counting->reading);
    counting->good = counting->good && count_failed(feed, counting->reading);
}

static bool count_all(struct store_feed *feed, struct reading *reading)
{
    struct queues *queues = &feed->queues;
    struct counting counting = {feed, reading, false};
    queues_free(queues);
    *queues = (struct queues){.name = NULL};
    reading->count[COUNT_TASKS] = reading->count[COUNT_WAITING] = reading->count[COUNT_READY] = 0;
    reading->count[COUNT_LEASED] = reading->count[COUNT_DEAD] = 0;
    reading->count[COUNT_PAUSED_QUEUES] = reading->tells_pauses ? 0 : ABSENT;
    feed->held = feed->looked = feed->failed = 0;
    bool good = tw_store_snapshot(feed->store, look_at_queues, &counting) == 0 && counting.good;
    reading->count[COUNT_QUEUES] = queues->count;
    return good;
}

/* ---- the process that runs the tasks --------------------------------------------------------------------- */

/* Says which process runs the tasks. Returns false if none does: other programs may take tasks in SQL. */
static bool tell_runner(int64_t process, struct reading *reading)
{
    if (process > 0)
        snprintf(reading->state, sizeof reading->state, "process %" PRId64 " runs the tasks", process);
    else
        snprintf(reading->state, sizeof reading->state,
                 process < 0 ? "a process runs the tasks" : "no process runs the tasks");
    return process != 0;
}

/* Writes the path of the file for a shell, or FILE if it is very long. */
static void write_path(const struct store_feed *feed, char path[PATH_SHOWN])
{
    memset(path, '\0', PATH_SHOWN);
    FILE *out = fmemopen(path, PATH_SHOWN - 1, "w");
    if (out != NULL)
        printable_word(feed->options->store, out);
    if (out == NULL || fclose(out) != 0 || strlen(path) >= PATH_SHOWN - 2)
        snprintf(path, PATH_SHOWN, "FILE");
}

/* Adds a warning behind those that are there. */
__attribute__((format(printf, 2, 3))) static void add_warning(struct reading *reading, const char *format, ...)
{
    size_t size = strlen(reading->warning);
    va_list list;
    va_start(list, format);
    snprintf(reading->warning + size, sizeof reading->warning - size, "%s", size > 0 ? "; " : "");
    size = strlen(reading->warning);
    vsnprintf(reading->warning + size, sizeof reading->warning - size, format, list);
    va_end(list);
}

/* Warns of dead tasks, which nobody calls any more, and of tasks that have failed and are tried again. */
static void warn_of_failures(const struct store_feed *feed, struct reading *reading, const char *path)
{
    uint64_t dead = reading->count[COUNT_DEAD], failed = feed->failed;
    if (dead > 0)
        add_warning(reading, "%" PRIu64 " task%s dead (tickwheel tasks --store %s dead)", dead,
                    dead == 1 ? " is" : "s are", path);
    if (failed > 0)
        add_warning(reading, "%s%" PRIu64 " task%s tried again (tickwheel tasks --store %s list)",
                    feed->looked < reading->count[COUNT_TASKS] ? "at least " : "", failed,
                    failed == 1 ? " has failed, and is" : "s have failed, and are", path);
}

/* Warns of a mark that keeps all tasks back; or of ready tasks that a run would call now, and of failures. */
static void warn(const struct store_feed *feed, struct reading *reading, bool runs)
{
    uint64_t ready = reading->count[COUNT_READY] - feed->held;
    char path[PATH_SHOWN];
    write_path(feed, path);
    if (store_file_is_marked(feed->store)) {
        add_warning(reading, "marked as restored: no task is called (tickwheel restore --store %s --go)", path);
        return;
    }
    if (!runs && ready > 0)
        add_warning(reading, "%" PRIu64 " task%s ready, and no process runs %s (tickwheel run --store %s)",
                    ready, ready == 1 ? " is" : "s are", ready == 1 ? "it" : "them", path);
    warn_of_failures(feed, reading, path);
}

/* ---- the feed -------------------------------------------------------------------------------------------- */

static void begin(const struct store_feed *feed, struct reading *reading)
{
    const struct top_options *options = feed->options;
    reading_init(reading, "store", options->store, options->queue);
    reading->time_ms = tw_store_now();
    reading->up_s = ABSENT;
    reading->exact = true;
    snprintf(reading->version, sizeof reading->version, "tickwheel " TW_VERSION);
    reading->tells_pauses = !reading->alone;
}

static bool read_file(struct store_feed *feed, struct reading *reading, char error[FEED_ERROR])
{
    int64_t process;
    if (feed->store == NULL && !open_file(feed, error))
        return false;
    uint64_t begun_ns = monotonic_ns();
    if (feed->took > 0 && begun_ns - feed->counted_ns < SHARE * feed->took) {
        *reading = feed->last;
    } else {
        begin(feed, reading);
        if (!count_all(feed, reading))
            return close_file(feed, error);
        feed->counted_ns = monotonic_ns();
        feed->took = feed->counted_ns - begun_ns;
        reading->at_ns = begun_ns;
        feed->last = *reading;
    }
    if (tw_store_runner(feed->store, &process) != 0)
        return close_file(feed, error);
    warn(feed, reading, tell_runner(process, reading));
    return true;
}

/* If a file that was open cannot be read, another one may be at its path. */
static bool read_store(struct feed *base, struct reading *reading, char error[FEED_ERROR])
{
    struct store_feed *feed = (struct store_feed *)base;
    bool was_open = feed->store != NULL;
    return read_file(feed, reading, error) || (was_open && read_file(feed, reading, error));
}

static void free_store(struct feed *base)
{
    struct store_feed *feed = (struct store_feed *)base;
    tw_store_close(feed->store);
    if (feed->log >= 0)
        close(feed->log);
    queues_free(&feed->queues);
    free(feed);
}

struct feed *command_top_store(const struct top_options *options)
{
    struct store_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        complain("tickwheel top: no memory");
        return NULL;
    }
    feed->feed = (struct feed){read_store, free_store};
    feed->options = options;
    feed->log = -1;
    return &feed->feed;
}
