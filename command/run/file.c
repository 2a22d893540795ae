/* SPDX-License-Identifier: MIT
 *
 * The engine of `tickwheel run --store`: the tasks are rows of a file, and this process runs them. The main
 * thread puts lines into the file, where the store's own thread finds them like the tasks of any other process.
 * So nothing depends on the memory of this process: if it is killed, the next run goes on.
 *
 * The file is asked after each call, and each second, whether a task is left, because other processes put,
 * cancel and move tasks too.
 */
#include "batch.h"
#include "calls.h"
#include "command.h"
#include "handler.h"
#include "news.h"
#include "pauses.h"
#include "printable.h"
#include "screen.h"
#include "store_file.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

static const char COMMAND[] = "tickwheel run";
enum { AGAIN_MS = 1000 };

static struct {
    struct run *run;
    struct tw_store *store;
    const char *path, *queue; /* queue NULL: all */
    struct handler handler;
    struct batch batch;
    struct pauses pauses;
    struct news news;
    int64_t at_start;           /* tasks in the file; an error: unknown */
    enum news_state state;      /* of the file, at the end */
    bool lines_wait;            /* they could not be put into the file */
    uint64_t asked_ms, rest_ms; /* when look_ahead() has asked the file, for how long that is good */
    uint64_t next_ms;           /* its answer: when the first waiting task comes; 0: not known */
    bool any;                   /* there are tasks, or the file could not be read */
} file;

/* ---- the file -------------------------------------------------------------------------------------------- */

/* Counts the tasks of the queues that this run runs; `dead`: the dead tasks. Returns: how many, or an error. */
static int64_t count_tasks(bool dead)
{
    uint64_t count;
    int error = tw_store_count(file.store, file.queue, dead, &count);
    return error == 0 ? (int64_t)count : error;
}

/* Asks the file for the tasks to come. The question costs time for each queue of the file, so an answer is good
 * for a while. */
static void look_ahead(void)
{
    uint64_t now_ms = tw_store_now();
    if (now_ms >= file.asked_ms && now_ms - file.asked_ms < file.rest_ms)
        return;
    file.asked_ms = now_ms;
    if (store_file_ahead(file.store, file.queue, &file.next_ms, &file.any) != 0) {
        file.next_ms = 0;
        file.any = true;
    }
    file.rest_ms = store_file_rest_ms(now_ms);
}

/* A run in standby has not had its turn, even if no task waits now. */
static bool busy(void)
{
    struct tw_store_info stats;
    tw_store_stats(file.store, &stats, sizeof stats);
    if (stats.jobs > 0 || file.run->options->stay || !stats.running)
        return true;
    look_ahead();
    if (file.any)
        return true;
    file.rest_ms = 0; /* a task may have come since the question: the end of a run needs a new answer */
    look_ahead();
    return file.any;
}

static void tell_news(void)
{
    news_look(&file.news);
    pauses_tell(&file.pauses, file.store, file.path, file.queue);
}

/* News of the store's thread, which tries again each second after an error. A damaged file does not end a run
 * that is to stay: somebody may mend it. */
static void on_store_error(void *arg, int error, const char *message)
{
    (void)arg;
    if (!news_error(&file.news, error, message, file.run->options->stay))
        return;
    atomic_store(&file.run->damaged, true);
    calls_wake(file.run, true);
    screen_quit();
}

/* Asks whether to try once more, after a second, to put lines into the file. They are kept meanwhile, and no
 * more are read. An error that goes away by itself does not end a run. */
static bool try_again(int error)
{
    struct pollfd fd = {.fd = file.run->wake[0], .events = POLLIN};
    if ((error != TW_EBUSY && error != TW_ENOSPACE) || calls_stop(file.run))
        return false;
    if (!file.lines_wait) {
        screen_hide();
        store_file_complain(file.store, COMMAND, file.path, "lines wait, and are tried again");
    }
    file.lines_wait = true;
    poll(&fd, 1, AGAIN_MS);
    return !calls_stop(file.run);
}

/* Takes note of what has become of the lines that were taken. */
static void see_batch(void)
{
    if (file.batch.failed && !file.run->failed) {
        file.run->failed = true;
        screen_hide();
        batch_complain(&file.batch, COMMAND, file.path, "stopped; ");
    }
    if (!file.batch.failed && file.lines_wait && file.batch.count == 0) {
        screen_hide();
        complain("%s: %s: the lines that waited are in the file", COMMAND, file.path);
        file.lines_wait = false;
    }
}

static const char *take(const struct line *line)
{
    const char *error = batch_add(&file.batch, line);
    see_batch();
    return error;
}

static bool settle(void)
{
    bool good = batch_commit(&file.batch);
    see_batch();
    tell_news();
    return good;
}

static void look(struct run_now *now)
{
    struct tw_store_info stats;
    tw_store_stats(file.store, &stats, sizeof stats);
    look_ahead();
    uint64_t next_ms = file.next_ms, now_ms = tw_store_now();
    if (!stats.running)
        strcpy(now->before, "standing by: another process runs the tasks; ");
    now->under_way = stats.jobs;
    now->next_ms = next_ms == TW_NEVER ? UINT64_MAX : next_ms > now_ms ? next_ms - now_ms : 0;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static bool stop(void)
{
    if (file.run->signalled || atomic_load(&file.run->damaged))
        screen_last_words();
    handler_give_back(&file.handler);
    int error = tw_store_stop(file.store);
    if (error != 0 && error != TW_EREPLACED) { /* that one has been told */
        screen_hide();
        store_file_complain(file.store, COMMAND, file.path,
                            "the end of a task cannot be written, and it will run again");
    }
    file.state = news_end(&file.news);
    file.run->lines = file.batch.tally;
    return error == 0 && file.state == NEWS_GOOD;
}

static void print_count(int64_t count, const char *when, FILE *out)
{
    if (count < 0)
        fprintf(out, "unknown %s", when);
    else
        fprintf(out, "%" PRId64 " %s", count, when);
}

/* Says up to where the input was read, unless the lines that are lost were told. */
static void print_reading(const struct run *run, FILE *out)
{
    if (!run->all_read && run->reader.number > 0 && !run->failed)
        fprintf(out,
                "the input was read up to line %" PRIu64 " of %s; the lines behind it are not in the file\n",
                run->reader.number, strcmp(run->reader.path, "-") == 0 ? "standard input" : run->reader.path);
}

/* Prints the options that choose the tasks of this run, for a hint that a shell takes. */
static void print_choice(FILE *out)
{
    fputs(" --store ", out);
    printable_word(file.path, out);
    if (file.queue == NULL)
        return;
    fputs(" --queue ", out);
    printable_word(file.queue, out);
}

/* Says whose tasks are counted. */
static void print_whose(FILE *out)
{
    fputs("tasks ", out);
    if (file.queue != NULL) {
        fputs("of queue ", out);
        printable_write(tw_text(file.queue), false, SIZE_MAX, out);
        fputc(' ', out);
    }
    fputs("in the file: ", out);
}

static void print_tasks(int64_t left, int64_t dead, FILE *out)
{
    print_whose(out);
    print_count(file.at_start, "at the start, ", out);
    print_count(left, "now", out);
    if (dead > 0) {
        fprintf(out, ", and %" PRId64 " dead (tickwheel tasks", dead);
        print_choice(out);
        fputs(" dead)", out);
    }
    fputc('\n', out);
    if (left <= 0)
        return;
    fputs("To go on with them later, use `tickwheel run", out);
    print_choice(out);
    fputs("`.\n", out);
}

static bool print_left(FILE *out)
{
    int64_t left = count_tasks(false), dead = left < 0 ? left : count_tasks(true);
    bool counted = left >= 0 && dead >= 0, known = counted && file.state != NEWS_DAMAGED;
    if (!counted && !atomic_load(&file.run->damaged)) { /* else the reason has been told */
        screen_hide();
        store_file_complain(file.store, COMMAND, file.path, "the tasks cannot be counted");
    }
    if (out != NULL) {
        print_reading(file.run, out);
        print_tasks(known ? left : -1, known ? dead : 0, out);
    }
    return known;
}

/* ---- the beginning --------------------------------------------------------------------------------------- */

/* Starts the store. Returns false after it has printed an error. */
static bool start_store(void)
{
    const struct run_options *options = file.run->options;
    struct tw_store_run_options how = {.workers = 1,
                                       .max_jobs =
                                           options->exec != NULL ? (uint32_t)options->jobs : HANDLER_JOBS,
                                       .on_error = on_store_error};
    int error = tw_store_handle(file.store, file.queue, 0, handler_call, &file.handler);
    if (error == 0)
        error = options->standby ? store_file_stand_by(file.store, COMMAND, file.path, &how, !options->quiet)
                                 : tw_store_start(file.store, &how);
    if (error == 0)
        return true;
    store_file_complain(file.store, COMMAND, file.path,
                        error == TW_EBUSY ? "the tasks cannot be run now (--standby waits until they can)"
                                          : "the tasks cannot be run");
    return false;
}

static bool start(struct run *run)
{
    file.run = run;
    file.path = run->options->store;
    file.queue = run->options->task.queue;
    file.news = (struct news){.command = COMMAND, .path = file.path, .lock = PTHREAD_MUTEX_INITIALIZER};
    file.store = store_file_open(COMMAND, file.path, true);
    if (file.store == NULL)
        return false;
    if (!batch_init(&file.batch, file.store, &run->options->task) ||
        !handler_init(&file.handler, run, file.store)) {
        complain("%s: the run cannot be started: %s", COMMAND, strerror(errno));
        return false;
    }
    file.batch.again = try_again;
    file.at_start = run->options->quiet ? 0 : count_tasks(false);
    return start_store();
}

static void end(void)
{
    if (file.store == NULL)
        return;
    tw_store_close(file.store);
    batch_fini(&file.batch);
}

const struct engine *command_run_store(void)
{
    static const struct engine ENGINE = {start, take, settle, look, busy, stop, print_left, end};
    return &ENGINE;
}
