/* SPDX-License-Identifier: MIT
 *
 * The store as a home of the contract: a verb a line comes in, and its reply goes out, which ends with a line
 * ".". test_contract tells of the words. The tasks are in the queue "q", or in that of a word before the verb,
 * "in QUEUE". The clocks stand still but for the verb "pass", and times are told from the beginning on.
 *
 * A run takes tasks by itself. Here it takes them while the verb "take" lasts: outside of it, the runner may
 * claim none. The jobs wait for the verbs that answer them. The verb "file" replies with the path, for
 * the other programs of file_homes.py.
 *
 * The run is in a process of its own. The verb "crash" ends that process, and then the next one begins. The
 * verb "begin" ends it cleanly: the next one has a new file, and its time is the first.
 */
#include <store/runner.h>
#include <tests/store/clock.h>
#include <tests/store/running.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 32, TAKEN = 64, LINE = 4096, FILLED = 2000, CRASHED = 3, ENDED = 4 };
static const uint64_t BEGIN_MS = 4102444800000; /* the year 2100: no task of this home is late by itself */

static struct {
    struct tw_store *store;
    const char *path;  /* of its file */
    const char *queue; /* of the verb */
    uint64_t *now_ms;  /* shared with the next process */
    atomic_bool open;  /* tasks may be taken */
    atomic_int taken;  /* jobs that the handler was given */
    struct tw_job *job[TAKEN];
    char id[TAKEN][64]; /* of those jobs */
    bool ended[TAKEN];  /* they were answered */
} home;

uint64_t __real_tw__store_pace_claims(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t most,
                                      uint64_t room);
uint64_t __wrap_tw__store_pace_claims(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t most,
                                      uint64_t room);

uint64_t __wrap_tw__store_pace_claims(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t most,
                                      uint64_t room)
{
    if (atomic_load(&home.open))
        return __real_tw__store_pace_claims(pace, pool, most, room);
    pace->more_ready = false;
    return 0;
}

static void refuse(const char *what, const char *word)
{
    fprintf(stderr, "store_home: %s: %s\n", what, word);
    exit(2);
}

/* ---- words ----------------------------------------------------------------------------------------------- */

struct verb {
    char *word[WORDS];
    int words;
};

static uint64_t number_of(const char *word)
{
    char *end;
    uint64_t number = strtoull(word, &end, 10);
    if (*word == '\0' || *end != '\0')
        refuse("no number", word);
    return number;
}

/* The word behind a name; NULL: the verb has no such name. */
static const char *option(const struct verb *verb, const char *name)
{
    for (int i = 2; i + 1 < verb->words; i++)
        if (strcmp(verb->word[i], name) == 0)
            return verb->word[i + 1];
    return NULL;
}

static uint64_t number(const struct verb *verb, const char *name, uint64_t otherwise)
{
    const char *word = option(verb, name);
    return word != NULL ? number_of(word) : otherwise;
}

static bool has(const struct verb *verb, const char *name)
{
    for (int i = 2; i < verb->words; i++)
        if (strcmp(verb->word[i], name) == 0)
            return true;
    return false;
}

/* The time that "in" or "at" tells; 0: none of the two. */
static uint64_t time_of(const struct verb *verb)
{
    if (option(verb, "at") != NULL)
        return BEGIN_MS + number(verb, "at", 0);
    return option(verb, "in") != NULL ? tw_store_now() + number(verb, "in", 0) : 0;
}

static unsigned conditions_of(const struct verb *verb)
{
    return (has(verb, "nx") ? TW_CONDITION_NX : 0u) | (has(verb, "xx") ? TW_CONDITION_XX : 0u) |
           (has(verb, "gt") ? TW_CONDITION_GT : 0u) | (has(verb, "lt") ? TW_CONDITION_LT : 0u) |
           (has(verb, "keepdue") ? TW_CONDITION_KEEPDUE : 0u);
}

static uint64_t max_late_of(const struct verb *verb)
{
    uint64_t max_late_ms = number(verb, "maxlate", TW_FOREVER);
    return max_late_ms > 0 ? max_late_ms : TW_STORE_ON_TIME;
}

static enum tw_missed missed_of(const struct verb *verb)
{
    const char *word = option(verb, "missed");
    if (word == NULL || strcmp(word, "coalesce") == 0)
        return TW_MISSED_COALESCE;
    return strcmp(word, "skip") == 0 ? TW_MISSED_SKIP : TW_MISSED_BURST;
}

/* ---- replies --------------------------------------------------------------------------------------------- */

static int64_t since_begin(uint64_t ms)
{
    return (int64_t)(ms - BEGIN_MS);
}

/* The reply of a call that returns 1, 0 or an error. */
static void tell(int64_t result)
{
    char message[TW_STORE_MESSAGE_SIZE];
    tw_store_message(home.store, message, sizeof message);
    if (result == TW_EGONE)
        puts("gone");
    else if (result < 0)
        printf("error %s\n", message);
    else
        puts(result > 0 ? "yes" : "no");
}

static void tell_number(int64_t result)
{
    if (result < 0)
        tell(result);
    else
        printf("%" PRId64 "\n", result);
}

static void tell_error(int64_t result)
{
    if (result < 0)
        tell(result);
}

static const char *name_of(enum tw_state state)
{
    switch (state) {
    case TW_STATE_WAITING:
        return "waiting";
    case TW_STATE_READY:
        return "ready";
    case TW_STATE_LEASED:
        return "leased";
    case TW_STATE_DEAD:
        break;
    }
    return "dead";
}

static const char *word_of(enum tw_missed missed)
{
    return missed == TW_MISSED_SKIP ? "skip" : missed == TW_MISSED_BURST ? "burst" : "coalesce";
}

/* The options that "get" leaves out. */
static void show_options(const struct tw_store_task *task)
{
    if (task->every_ms > 0)
        printf(" missed %s", word_of(task->missed));
    if (task->max_late_ms != TW_FOREVER)
        printf(" maxlate %" PRIu64, task->max_late_ms == TW_STORE_ON_TIME ? 0 : task->max_late_ms);
    printf(" tries %" PRIu32 " backoff %" PRIu64 " %g %" PRIu64 " jitter %" PRIu32, task->tries,
           task->backoff_ms, task->factor_percent / 100.0, task->backoff_max_ms,
           task->jitter == TW_STORE_NO_JITTER ? 0 : task->jitter);
}

/* `arg` points to whether all details are to be shown. */
static void show(void *arg, const struct tw_store_task *task)
{
    bool details = *(bool *)arg, ahead = task->state == TW_STATE_WAITING || task->state == TW_STATE_READY;
    printf("%s due %" PRId64, name_of(task->state), since_begin(task->due_ms));
    if (ahead || (details && task->next_ms > 0))
        printf(" next %" PRId64, since_begin(task->next_ms));
    printf(" attempt %" PRIu32, task->attempt);
    if (task->lapses > 0)
        printf(" lapses %" PRIu32, task->lapses);
    if (details && task->missed_periods > 0)
        printf(" missed-periods %" PRIu64, task->missed_periods);
    if (task->every_ms > 0)
        printf(" every %" PRIu64, task->every_ms);
    if (task->every_ms > 0 && task->times != TW_FOREVER)
        printf(" times %" PRIu64, task->times);
    if (details)
        show_options(task);
    if (task->payload.size > 0)
        printf(" payload %.*s", (int)task->payload.size, (const char *)task->payload.data);
    if (task->error != NULL && task->error[0] != '\0')
        printf(" error %s", task->error);
    if (task->replaced)
        printf(" replaced");
    puts("");
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

static enum tw_answer keep(void *arg, struct tw_job *job)
{
    int n = atomic_load(&home.taken);
    (void)arg;
    if (n == TAKEN)
        refuse("too many tasks were taken", "");
    home.job[n] = job;
    snprintf(home.id[n], sizeof home.id[n], "%.*s", (int)job->id.size, (const char *)job->id.data);
    atomic_store(&home.taken, n + 1);
    return TW_ANSWER_LATER;
}

static void start(void)
{
    struct tw_store_run_options options = {.workers = 1};
    if (tw_store_handle(home.store, NULL, 0, keep, NULL) != 0 || tw_store_start(home.store, &options) != 0)
        refuse("the run does not start", "");
    runner_idle(home.store);
}

static void take(void)
{
    int first = atomic_load(&home.taken);
    int n;
    atomic_store(&home.open, true);
    do { /* a few are claimed ahead of the worker, and then more */
        n = atomic_load(&home.taken);
        runner_idle(home.store);
        EVENTUALLY(attempts(home.store) == (uint64_t)atomic_load(&home.taken));
    } while (atomic_load(&home.taken) > n);
    atomic_store(&home.open, false);
    for (int i = first; i < atomic_load(&home.taken); i++) {
        const struct tw_job *job = home.job[i];
        printf("%s due %" PRId64 " attempt %" PRIu32, home.id[i], since_begin(job->due_ms), job->attempt);
        if (job->missed_periods > 0)
            printf(" missed-periods %" PRIu64, job->missed_periods);
        puts("");
    }
    if (first == atomic_load(&home.taken))
        puts("nothing");
}

/* Answers the attempt that was taken last of this id. What the answer has done, the task shows. */
static void answer(const struct verb *verb, enum tw_answer answer)
{
    int n = atomic_load(&home.taken) - 1;
    while (n >= 0 && (home.ended[n] || strcmp(home.id[n], verb->word[1]) != 0))
        n--;
    if (n < 0)
        refuse("this task was not taken", verb->word[1]);
    if (option(verb, "error") != NULL)
        tw_job_fail(home.job[n], option(verb, "error"));
    if (time_of(verb) > 0)
        tw_job_retry_at(home.job[n], time_of(verb));
    home.ended[n] = true;
    tw_job_answer(home.job[n], answer);
    runner_idle(home.store);
    puts("-");
}

/* ---- the other verbs ------------------------------------------------------------------------------------- */

/* "backoff FIRST [FACTOR MOST]", as a server has it, and "jitter PERCENT". */
static void read_waits(const struct verb *verb, struct tw_store_delayed *task)
{
    task->jitter = (uint32_t)number(verb, "jitter", 0);
    if (option(verb, "jitter") != NULL && task->jitter == 0)
        task->jitter = TW_STORE_NO_JITTER;
    for (int i = 2; i + 1 < verb->words; i++) {
        if (strcmp(verb->word[i], "backoff") != 0)
            continue;
        task->backoff_ms = number_of(verb->word[i + 1]);
        if (i + 3 < verb->words && isdigit((unsigned char)verb->word[i + 2][0])) {
            task->factor_percent = (uint32_t)(strtod(verb->word[i + 2], NULL) * 100 + 0.5);
            task->backoff_max_ms = number_of(verb->word[i + 3]);
        }
    }
}

static struct tw_store_delayed task_of(const struct verb *verb, const char *id)
{
    const char *payload = option(verb, "payload");
    struct tw_store_delayed task = {.queue = home.queue,
                                    .id = tw_text(id),
                                    .due_ms = time_of(verb),
                                    .payload = {payload, payload != NULL ? strlen(payload) : 0},
                                    .every_ms = number(verb, "every", 0),
                                    .times = number(verb, "times", 0),
                                    .missed = missed_of(verb),
                                    .tries = (uint32_t)number(verb, "tries", 0),
                                    .max_late_ms = max_late_of(verb)};
    read_waits(verb, &task);
    return task;
}

static void put_task(const struct verb *verb)
{
    struct tw_store_delayed task = task_of(verb, verb->word[1]);
    tell(store_put(home.store, &task, conditions_of(verb)));
}

/* Puts the tasks f1, f2 and so on, in one transaction. */
static void fill(const struct verb *verb)
{
    static struct tw_store_change change[FILLED];
    static char id[FILLED][16];
    uint64_t count = number_of(verb->word[1]);
    if (count > FILLED)
        refuse("too many tasks to fill", verb->word[1]);
    for (uint64_t i = 0; i < count; i++) {
        snprintf(id[i], sizeof id[i], "f%" PRIu64, i + 1);
        change[i] = (struct tw_store_change){.verb = TW_STORE_VERB_PUT, .task = task_of(verb, id[i])};
    }
    tell_error(tw_store_apply(home.store, change, count));
}

static void cancel_task(const char *id)
{
    static const char *const words[] = {
        [TW_CANCEL_GONE] = "gone", [TW_CANCEL_CANCELLED] = "cancelled", [TW_CANCEL_AT_WORK] = "at work"};
    enum tw_cancel found = TW_CANCEL_GONE;
    int error = tw_store_cancel(home.store, tw_store_named(home.queue, id), &found);
    if (error != 0)
        tell(error);
    else
        puts(words[found]);
}

/* `next` of a task that nobody has. */
static void show_row(void *arg, const struct tw_store_task *task)
{
    (void)arg;
    printf("%.*s due %" PRId64, (int)task->id.size, (const char *)task->id.data, since_begin(task->due_ms));
    if (task->state == TW_STATE_WAITING || task->state == TW_STATE_READY)
        printf(" next %" PRId64, since_begin(task->next_ms));
    puts("");
}

/* The dead tasks have a scan of their own. */
static void show_all(void)
{
    static const struct tw_store_range dead = {.states = TW_STATE_DEAD};
    tell_error(store_scan(home.store, home.queue, NULL, show_row, NULL));
    tell_error(store_scan(home.store, home.queue, &dead, show_row, NULL));
}

static void list(unsigned states, uint64_t from_ms, uint64_t to_ms, uint64_t count)
{
    struct tw_store_range range = {.states = states, .from_ms = from_ms, .to_ms = to_ms, .count = count};
    int64_t found = store_scan(home.store, home.queue, &range, show_row, NULL);
    tell_error(found);
    if (found == 0)
        puts("nothing");
}

/* Marks the file as restored, or takes the mark away. */
static void mark(bool restored)
{
    bool changed = false;
    int error = tw_store_mark_restored(home.store, restored, &changed);
    tell(error != 0 ? error : changed);
}

static void forecast(uint64_t step_ms, uint32_t steps)
{
    static uint64_t counts[TW_FORECAST_MAX];
    int error = tw_store_forecast(home.store, home.queue, step_ms, steps, counts);
    tell_error(error);
    for (uint32_t i = 0; i < steps && error == 0; i++)
        printf("%" PRIu64 "%c", counts[i], i + 1 < steps ? ' ' : '\n');
}

static void replay(const struct verb *verb)
{
    bool all = strcmp(verb->word[1], "all") == 0;
    uint64_t due_ms = time_of(verb) > 0 ? time_of(verb) : tw_store_now();
    const char *id = all ? NULL : verb->word[1];
    tell_number(
        store_replay(home.store, (struct tw_store_name){home.queue, {id, all ? 0 : strlen(id)}}, due_ms));
}

static void promote(const char *id)
{
    bool all = strcmp(id, "all") == 0;
    tell_number(
        store_promote(home.store, (struct tw_store_name){home.queue, {all ? NULL : id, all ? 0 : strlen(id)}}));
}

static void purge(const char *id)
{
    bool all = strcmp(id, "all") == 0;
    uint64_t before_ms = tw_store_now() + 1;
    tell_number(store_purge(
        home.store, (struct tw_store_name){home.queue, {all ? NULL : id, all ? 0 : strlen(id)}}, before_ms));
}

/* The counts of the run that are not 0. */
static void tell_counts(void)
{
    struct tw_store_info info = stats_of(home.store);
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {{"taken", info.taken},     {"done", info.done},       {"failed", info.failed},
                  {"lapsed", info.lapsed},   {"back", info.back},       {"died", info.died},
                  {"dropped", info.dropped}, {"skipped", info.skipped}, {"coalesced", info.coalesced}};
    const char *space = "";
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].count == 0)
            continue;
        printf("%s%s %" PRIu64, space, counts[i].name, counts[i].count);
        space = " ";
    }
    puts(*space != '\0' ? "" : "nothing");
}

static void show_load(void *arg, const struct tw_store_load *load)
{
    (void)arg;
    printf("waiting %" PRIu64 " ready %" PRIu64 " leased %" PRIu64 " dead %" PRIu64 "%s\n", load->waiting,
           load->ready, load->leased, load->dead, load->paused ? " paused" : "");
}

static void see_tasks(const struct verb *verb, bool details)
{
    for (int i = 1; i < verb->words; i++)
        if (tw_store_get(home.store, tw_store_named(home.queue, verb->word[i]), show, &details) != 0)
            puts("gone");
}

/* Nobody is waiting for time but the run, and it sleeps again when this returns. It has seen before each task
 * that was ready when it was filed. A run that sees such a task later puts it behind others (window.c). */
static void pass(uint64_t ms)
{
    runner_idle(home.store);
    clock_pass(ms);
    *home.now_ms += ms;
    runner_idle(home.store);
}

/* Somebody sets the clock, forward or back. */
static void set_clock(int64_t ms)
{
    runner_idle(home.store);
    clock_step(ms);
    *home.now_ms += (uint64_t)ms;
    runner_idle(home.store);
}

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* Sets a member of a change from a word "due_ms=5"; each array has one name. */
static void set_member(struct tw_store_change *change, char *word)
{
    struct tw_store_delayed *task = &change->task;
    char *value = strchr(word, '=');
    if (value == NULL)
        refuse("no member", word);
    *value++ = '\0';
    uint64_t *const wide[] = {&task->due_ms,         &task->every_ms,    &task->times,    &task->backoff_ms,
                              &task->backoff_max_ms, &task->max_late_ms, change->reserved};
    static const char *const wide_names[] = {"due_ms",         "every_ms",    "times",   "backoff_ms",
                                             "backoff_max_ms", "max_late_ms", "reserved"};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (strcmp(word, wide_names[i]) == 0)
            *wide[i] = number_of(value);
    uint32_t *const narrow[] = {&task->tries, &task->factor_percent, &task->jitter, &change->conditions};
    static const char *const narrow_names[] = {"tries", "factor_percent", "jitter", "conditions"};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        if (strcmp(word, narrow_names[i]) == 0)
            *narrow[i] = (uint32_t)number_of(value);
    if (strcmp(word, "verb") == 0)
        change->verb = (enum tw_store_verb)number_of(value);
    if (strcmp(word, "missed") == 0)
        task->missed = (enum tw_missed)number_of(value);
    if (strcmp(word, "queue") == 0)
        task->queue = value;
    if (strcmp(word, "id") == 0)
        task->id = tw_text(value);
    if (strcmp(word, "payload.size") == 0)
        task->payload = (struct tw_bytes){"", number_of(value)}; /* it is refused before anybody reads it */
}

/* Makes a change whose members are given one by one, also members that no scenario names. `max_payload=N`
 * before them opens the file once more, with this limit. */
static void apply(const struct verb *verb)
{
    struct tw_store_change change = {.verb = TW_STORE_VERB_PUT,
                                     .task = {.queue = home.queue, .id = tw_text("a")}};
    struct tw_store *usual = home.store;
    char *limit = verb->words > 1 ? strchr(verb->word[1], '=') : NULL;
    bool limited = limit != NULL && strncmp(verb->word[1], "max_payload", (size_t)(limit - verb->word[1])) == 0;
    struct tw_store_options options = {.max_payload = limited ? number_of(limit + 1) : 0};
    char message[256];
    if (limited && tw_store_open(&home.store, home.path, &options, message, sizeof message) != 0)
        refuse("the file is not opened", message);
    for (int i = limited ? 2 : 1; i < verb->words; i++)
        set_member(&change, verb->word[i]);
    int error = tw_store_apply(home.store, &change, 1);
    tell(error != 0 ? error : 1);
    if (limited)
        tw_store_close(home.store);
    home.store = usual;
}

/* ---- the lines ------------------------------------------------------------------------------------------- */

static void obey(const struct verb *verb)
{
    const char *name = verb->word[0], *id = verb->words > 1 ? verb->word[1] : "";
    if (strcmp(name, "put") == 0)
        put_task(verb);
    else if (strcmp(name, "fill") == 0)
        fill(verb);
    else if (strcmp(name, "move") == 0)
        tell(store_move_at(home.store, tw_store_named(home.queue, id), time_of(verb), conditions_of(verb)));
    else if (strcmp(name, "cancel") == 0)
        cancel_task(id);
    else if (strcmp(name, "take") == 0)
        take();
    else if (strcmp(name, "done") == 0)
        answer(verb, TW_ANSWER_DONE);
    else if (strcmp(name, "fail") == 0)
        answer(verb, TW_ANSWER_FAILED);
    else if (strcmp(name, "dead") == 0)
        answer(verb, TW_ANSWER_DEAD);
    else if (strcmp(name, "back") == 0)
        answer(verb, TW_ANSWER_BACK);
    else if (strcmp(name, "get") == 0)
        see_tasks(verb, false);
    else if (strcmp(name, "details") == 0)
        see_tasks(verb, true);
    else if (strcmp(name, "range") == 0)
        list(TW_STATE_WAITING, BEGIN_MS + number_of(id), BEGIN_MS + number_of(verb->word[2]), 0);
    else if (strcmp(name, "next") == 0)
        list(TW_STATE_WAITING, 0, 0, 1);
    else if (strcmp(name, "scan") == 0)
        show_all();
    else if (strcmp(name, "deaths") == 0)
        list(TW_STATE_DEAD, 0, 0, 0);
    else if (strcmp(name, "forecast") == 0)
        forecast(number_of(id), (uint32_t)number_of(verb->word[2]));
    else if (strcmp(name, "len") == 0)
        tell_number(store_count(home.store, home.queue, false));
    else if (strcmp(name, "counts") == 0)
        tell_counts();
    else if (strcmp(name, "states") == 0)
        tell_error(tw_store_loads(home.store, home.queue, show_load, NULL));
    else if (strcmp(name, "promote") == 0)
        promote(id);
    else if (strcmp(name, "replay") == 0)
        replay(verb);
    else if (strcmp(name, "purge") == 0)
        purge(id);
    else if (strcmp(name, "mark") == 0 || strcmp(name, "go") == 0)
        mark(strcmp(name, "mark") == 0);
    else if (strcmp(name, "pause") == 0)
        tell(store_pause(home.store, home.queue));
    else if (strcmp(name, "resume") == 0)
        tell(store_resume(home.store, home.queue));
    else if (strcmp(name, "pass") == 0)
        pass(number_of(id));
    else if (strcmp(name, "set") == 0)
        set_clock(*id == '-' ? -(int64_t)number_of(id + 1) : (int64_t)number_of(id));
    else if (strcmp(name, "apply") == 0)
        apply(verb);
    else if (strcmp(name, "list") == 0)
        list((unsigned)number_of(id), 0, 0, 0);
    else if (strcmp(name, "crash") == 0)
        _exit(CRASHED);
    else if (strcmp(name, "file") == 0)
        puts(home.path);
    else
        refuse("no verb", name);
}

/* Returns whether the next scenario begins. */
static bool obey_lines(void)
{
    char line[LINE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct verb verb = {.words = 0};
        home.queue = "q";
        for (char *word = strtok(line, " \n"); word != NULL && verb.words < WORDS; word = strtok(NULL, " \n"))
            verb.word[verb.words++] = word;
        if (verb.words > 0 && strcmp(verb.word[0], "begin") == 0)
            return true;
        if (verb.words > 2 && strcmp(verb.word[0], "in") == 0) {
            home.queue = verb.word[1];
            verb.words -= 2;
            memmove(verb.word, verb.word + 2, (size_t)verb.words * sizeof *verb.word);
        }
        if (verb.words > 0)
            obey(&verb);
        puts(".");
        fflush(stdout);
    }
    return false;
}

/* `follows`: a verb has ended the run before this one, which replies to it. */
static int run(struct fixture *fixture, bool follows)
{
    clock_stop(*home.now_ms);
    clock_halt(); /* a busy machine takes no job back from a slow worker */
    store_reopen(fixture);
    home.store = fixture->store;
    home.path = fixture->path;
    start();
    if (follows)
        puts(".");
    fflush(stdout);
    bool more = obey_lines();
    for (int i = 0; i < atomic_load(&home.taken); i++)
        if (!home.ended[i])
            tw_job_answer(home.job[i], TW_ANSWER_DONE);
    if (tw_store_stop(home.store) != 0)
        refuse("the run does not stop", "");
    tw_store_close(home.store);
    store_remove(fixture);
    return more ? ENDED : 0;
}

/* Runs in a process of its own, and returns its status. Its end of the pipe ends with it. */
static int run_apart(struct fixture *fixture, bool follows)
{
    int ends[2];
    char byte;
    pid_t process = pipe(ends) == 0 ? fork() : -1;
    if (process < 0)
        refuse("no process", "");
    if (process == 0)
        exit(run(fixture, follows));
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 0)
        refuse("a run has told more than its end", "");
    close(ends[0]);
    return eventually_exited(process);
}

int main(void)
{
    struct fixture *fixture = NULL;
    int status = 0;
    home.now_ms = mmap(NULL, sizeof *home.now_ms, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (home.now_ms == MAP_FAILED || store_setup((void **)&fixture) != 0)
        refuse("no file", "");
    tw_store_close(fixture->store);
    fixture->store = NULL;
    do {
        if (status == 0 || WEXITSTATUS(status) == ENDED)
            *home.now_ms = BEGIN_MS;
        status = run_apart(fixture, status != 0);
    } while (WIFEXITED(status) && (WEXITSTATUS(status) == CRASHED || WEXITSTATUS(status) == ENDED));
    bool clean = status == 0 && rmdir(fixture->folder) == 0;
    free(fixture);
    return !clean;
}
