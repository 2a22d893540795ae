/* SPDX-License-Identifier: MIT
 *
 * A task that is filed gets its revision from the file, and the ledger learns it at the next comparison. Until
 * then it knows only the order in which the changes came. So each comparison proves two things about a revision
 * that is new: it is larger than every revision before, and a later change has a larger one.
 */
#include "ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <task/ends.h>
#include <task/limits.h>
#include <task/state.h>

/* ---- names and bytes ------------------------------------------------------------------------------------- */

enum { POOL = 8192 };

/* Bytes of every kind, always the same. */
static const unsigned char *pool(void)
{
    static unsigned char bytes[POOL];
    static bool filled;
    struct rng rng;
    if (!filled) {
        rng_init(&rng, 17);
        for (size_t i = 0; i < POOL; i++)
            bytes[i] = (unsigned char)rng_next(&rng);
        filled = true;
    }
    return bytes;
}

const char *ledger_queue(unsigned task)
{
    static char longest[TW_STORE_QUEUE_MAX + 1];
    if (longest[0] == '\0')
        memset(longest, 'z', TW_STORE_QUEUE_MAX);
    const char *const names[LEDGER_QUEUES] = {"orders", "\xc3\xa9t\xc3\xa9 \xe2\x82\xac", longest};
    return names[task / LEDGER_IDS];
}

/* An id's first byte is its number, so no two are equal. */
const void *ledger_id(unsigned task, size_t *size)
{
    static const size_t sizes[] = {1, 3, 16, 40, 600, TW_STORE_ID_MAX};
    static unsigned char ids[LEDGER_IDS][TW_STORE_ID_MAX];
    unsigned number = task % LEDGER_IDS;
    memcpy(ids[number], pool() + number, TW_STORE_ID_MAX);
    ids[number][0] = (unsigned char)(number * 13);
    *size = number == LEDGER_IDS - 1 ? TW_STORE_ID_MAX : sizes[number % 5];
    return ids[number];
}

/* Most payloads are small; one in eight needs pages of its own. */
const void *ledger_payload(unsigned payload, size_t *size)
{
    static const size_t sizes[] = {7, 1, 20, 80, 7, 300, 20, 4500};
    *size = payload == 0 ? 0 : sizes[payload % 8];
    return payload == 0 ? NULL : pool() + payload % (POOL - 4500);
}

const char *ledger_error(unsigned error)
{
    static const char *const errors[] = {NULL, "no answer",
                                         "Stra\xc3\x9f"
                                         "e",
                                         "", "the run has ended"};
    return errors[error % LEDGER_ERRORS];
}

/* ---- changes --------------------------------------------------------------------------------------------- */

static const uint64_t periods[] = {0, 0, 0, 0, 50, 1000, 60000, UINT64_C(3155760000000)};

static uint64_t draw_due(struct rng *rng, uint64_t now_ms)
{
    switch (rng_below(rng, 8)) {
    case 0:
        return 1 + rng_below(rng, 2); /* 1970; 0 stands for no time in an entry */
    case 1:
        return TW_STORE_TIME_MAX - rng_below(rng, 2);
    case 2:
        return now_ms + rng_below(rng, 4); /* many tasks at the same time */
    case 3:
        return now_ms - rng_below(rng, 200000);
    default:
        return now_ms + rng_below(rng, 200000);
    }
}

struct tw__task_retry ledger_draw_waits(struct rng *rng)
{
    static const uint64_t mosts[] = {0, 0, 50, 150, 100000, UINT64_C(3155760000000)};
    static const uint32_t factors[] = {0, 0, 100, 101, 150, 333, 10000}, jitters[] = {0, 1, 10, 100};
    struct tw__task_retry waits = {.first_ms = rng_below(rng, 3) * 100, .tries = (uint32_t)rng_below(rng, 4)};
    waits.max_ms = mosts[rng_below(rng, 6)];
    waits.factor_percent = factors[rng_below(rng, 7)];
    waits.jitter = rng_below(rng, 5) == 0 ? TW_STORE_NO_JITTER : jitters[rng_below(rng, 4)];
    return waits;
}

void ledger_draw(struct rng *rng, uint64_t now_ms, struct ledger_change *change)
{
    static const enum tw_store_verb verbs[] = {TW_STORE_VERB_PUT,   TW_STORE_VERB_PUT,  TW_STORE_VERB_PUT,
                                               TW_STORE_VERB_PUT,   TW_STORE_VERB_MOVE, TW_STORE_VERB_MOVE,
                                               TW_STORE_VERB_CANCEL};
    enum {
        KEEP = TW_CONDITION_KEEPDUE,
        KEEP_NX = TW_CONDITION_KEEPDUE | TW_CONDITION_NX,
        KEEP_XX = TW_CONDITION_KEEPDUE | TW_CONDITION_XX
    };
    static const unsigned of_put[] = {
        0,    0,    0,       0,      0, 0, TW_CONDITION_NX, TW_CONDITION_XX, TW_CONDITION_GT, TW_CONDITION_LT,
        KEEP, KEEP, KEEP_NX, KEEP_XX};
    static const unsigned of_move[] = {0, 0, TW_CONDITION_GT, TW_CONDITION_LT};
    static const uint64_t times[] = {0, TW_FOREVER, 1, 2, 5}; /* without a period only the first two */
    static const uint64_t lates[] = {0, 0, 0, 0, TW_FOREVER, TW_STORE_ON_TIME, 1000, 100000};
    *change = (struct ledger_change){.verb = verbs[rng_below(rng, 7)],
                                     .task = (unsigned)rng_below(rng, LEDGER_TASKS),
                                     .due_ms = draw_due(rng, now_ms)};
    if (change->verb == TW_STORE_VERB_MOVE)
        change->conditions = of_move[rng_below(rng, 4)];
    if (change->verb != TW_STORE_VERB_PUT)
        return;
    change->conditions = of_put[rng_below(rng, sizeof of_put / sizeof of_put[0])];
    change->payload = (unsigned)rng_below(rng, 1000);
    change->every_ms = periods[rng_below(rng, 8)];
    change->times = times[rng_below(rng, change->every_ms > 0 ? 5 : 2)];
    enum tw_missed missed = (enum tw_missed)rng_below(rng, 3);
    change->missed = change->every_ms > 0 ? missed : 0;
    change->waits = ledger_draw_waits(rng);
    change->max_late_ms = lates[rng_below(rng, 8)];
}

struct tw_store_change ledger_call(const struct ledger_change *change)
{
    struct tw_store_change call = {.verb = change->verb, .conditions = change->conditions};
    struct tw_store_delayed *task = &call.task;
    task->queue = ledger_queue(change->task);
    task->id.data = ledger_id(change->task, &task->id.size);
    task->due_ms = change->due_ms;
    task->payload.data = ledger_payload(change->payload, &task->payload.size);
    task->every_ms = change->every_ms;
    task->times = change->times;
    task->missed = change->missed;
    task->tries = change->waits.tries;
    task->backoff_ms = change->waits.first_ms;
    task->backoff_max_ms = change->waits.max_ms;
    task->factor_percent = change->waits.factor_percent;
    task->jitter = change->waits.jitter;
    task->max_late_ms = change->max_late_ms;
    return call;
}

static struct tw__task_retry fill_in(struct tw__task_retry waits, const struct tw__task_retry *usual)
{
    waits.tries = waits.tries > 0 ? waits.tries : usual->tries;
    waits.first_ms = waits.first_ms > 0 ? waits.first_ms : usual->first_ms;
    waits.max_ms = waits.max_ms > 0 ? waits.max_ms : usual->max_ms;
    waits.factor_percent = waits.factor_percent > 0 ? waits.factor_percent : usual->factor_percent;
    waits.jitter = waits.jitter > 0 ? waits.jitter : usual->jitter;
    return waits;
}

struct tw__task_retry ledger_retry_of(const struct ledger *ledger, const struct entry *entry)
{
    static const struct tw__task_retry first = {
        .tries = 20, .factor_percent = 200, .jitter = 10, .first_ms = 1000, .max_ms = 3600000};
    struct tw__task_retry usual = fill_in(ledger->usual, &first), retry = fill_in(entry->waits, &usual);
    retry.jitter = retry.jitter == TW_STORE_NO_JITTER ? 0 : retry.jitter;
    return retry;
}

bool ledger_has(const struct entry *entry)
{
    return entry->task.stage != TW__TASK_NONE;
}

bool ledger_is_dead(const struct entry *entry)
{
    return entry->task.stage == TW__TASK_BURIED;
}

struct tw__task_outcome ledger_do(struct ledger *ledger, unsigned task, const struct tw__task_call *call,
                                  uint64_t now_ms)
{
    struct entry *entry = &ledger->entry[task];
    struct tw__task_outcome outcome;
    struct tw__task before = entry->task;
    before.retry = ledger_retry_of(ledger, entry);
    tw__task_change(&before, call, now_ms, &outcome);
    if (outcome.reply == TW__TASK_NO || outcome.reply == TW__TASK_MISSING || outcome.reply == TW__TASK_IS_DEAD)
        return outcome;
    entry->task = outcome.task;
    entry->dead_ms = ledger_is_dead(entry) ? now_ms : 0;
    entry->error = outcome.clears_error ? 0 : entry->error;
    bool behind = entry->task.stage == TW__TASK_REPLACED && outcome.clears_error;
    if (outcome.filed || behind) { /* in a file a task behind an attempt has its place already */
        entry->filed = ++ledger->filed;
        entry->revision = 0;
        entry->place_ms = entry->task.next_ms > outcome.filed_ms ? entry->task.next_ms : outcome.filed_ms;
    }
    return outcome;
}

/* The options of a put as the table has them. 0 stands for an option that is left out. */
static struct tw__task options_of(const struct ledger_change *change)
{
    struct tw__task options = {.every_ms = change->every_ms, .times = 1, .max_late_ms = change->max_late_ms};
    if (change->every_ms > 0) {
        options.times = change->times == 0 ? TW_FOREVER : change->times;
        options.missed = change->missed;
    }
    if (change->max_late_ms == 0)
        options.max_late_ms = TW_FOREVER;
    else if (change->max_late_ms == TW_STORE_ON_TIME)
        options.max_late_ms = 0;
    return options;
}

static int result_of(enum tw__task_reply reply, enum tw_store_verb verb)
{
    switch (reply) {
    case TW__TASK_MISSING:
        return verb == TW_STORE_VERB_CANCEL ? (int)TW_CANCEL_GONE : TW_EGONE;
    case TW__TASK_IS_DEAD:
        return TW_EDEAD;
    case TW__TASK_CANCELLED:
        return TW_CANCEL_CANCELLED;
    case TW__TASK_AT_WORK:
        return TW_CANCEL_AT_WORK;
    default:
        return reply == TW__TASK_YES;
    }
}

int ledger_make(struct ledger *ledger, const struct ledger_change *change, uint64_t now_ms)
{
    static const enum tw__task_verb verbs[] = {[TW_STORE_VERB_PUT] = TW__TASK_PUT,
                                               [TW_STORE_VERB_MOVE] = TW__TASK_MOVE,
                                               [TW_STORE_VERB_CANCEL] = TW__TASK_CANCEL};
    struct tw__task options = options_of(change);
    struct tw__task_call call = {.verb = verbs[change->verb],
                                 .conditions = change->conditions,
                                 .at_ms = change->due_ms,
                                 .options = &options};
    struct tw__task_outcome outcome = ledger_do(ledger, change->task, &call, now_ms);
    if (outcome.renewed) {
        ledger->entry[change->task].payload = change->payload;
        ledger->entry[change->task].waits = change->waits;
    }
    return result_of(outcome.reply, change->verb);
}

/* ---- comparing ------------------------------------------------------------------------------------------- */

/* A scan under way: the entries that must come, and the place that it has come to. */
struct reading {
    struct ledger *ledger;
    unsigned task[LEDGER_IDS], n, at;
    bool dead;
    uint64_t last_ms, last_revision;
    const char *wrong;
};

static char text[400];

static const char *differ(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *differ(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

unsigned ledger_sort(const struct ledger *ledger, unsigned queue, bool dead, unsigned *tasks)
{
    unsigned n = 0;
    for (unsigned task = queue * LEDGER_IDS; task < (queue + 1) * LEDGER_IDS; task++) {
        const struct entry *entry = &ledger->entry[task];
        if (!ledger_has(entry) || ledger_is_dead(entry) != dead)
            continue;
        unsigned at = n++;
        for (; at > 0; at--) {
            const struct entry *before = &ledger->entry[tasks[at - 1]];
            uint64_t one = dead ? before->dead_ms : before->place_ms,
                     two = dead ? entry->dead_ms : entry->place_ms;
            if (one < two || (one == two && before->filed < entry->filed))
                break;
            tasks[at] = tasks[at - 1];
        }
        tasks[at] = task;
    }
    return n;
}

static bool same_bytes(const void *one, size_t size, const void *two, size_t size_two)
{
    return size == size_two && (size == 0 || memcmp(one, two, size) == 0);
}

static const char *compare_name(unsigned task, const struct tw_store_task *seen)
{
    size_t size;
    const void *id = ledger_id(task, &size);
    if (strcmp(seen->queue, ledger_queue(task)) != 0)
        return differ("task %u: the queue is '%s'", task, seen->queue);
    if (!same_bytes(id, size, seen->id.data, seen->id.size))
        return differ("task %u: another id of %zu bytes came, due %" PRIu64, task, seen->id.size, seen->due_ms);
    return NULL;
}

static const char *compare_bytes(unsigned task, const struct entry *entry, const struct tw_store_task *seen)
{
    size_t size;
    const void *payload = ledger_payload(entry->payload, &size);
    const char *error = ledger_error(entry->error);
    if (!same_bytes(payload, size, seen->payload.data, seen->payload.size))
        return differ("task %u: the payload of %zu bytes is another, of %zu", task, size, seen->payload.size);
    if ((error == NULL) != (seen->error == NULL) || (error != NULL && strcmp(error, seen->error) != 0))
        return differ("task %u: the error is '%s'", task, seen->error != NULL ? seen->error : "none");
    return NULL;
}

static const char *compare_revision(struct ledger *ledger, unsigned task, uint64_t revision)
{
    struct entry *entry = &ledger->entry[task];
    if (entry->revision != 0 && entry->revision != revision)
        return differ("task %u: revision %" PRIu64 ", expected %" PRIu64, task, revision, entry->revision);
    if (entry->revision == 0 && revision <= ledger->top)
        return differ("task %u: revision %" PRIu64 " is used twice: %" PRIu64 " was seen", task, revision,
                      ledger->top);
    entry->revision = revision;
    return NULL;
}

/* A task that has become due since the comparison began may be seen with either state. */
static enum tw_state state_of(const struct ledger *ledger, const struct entry *entry, enum tw_state seen)
{
    enum tw_state before = tw__task_state(&entry->task, ledger->look_ms);
    return seen == before ? before : tw__task_state(&entry->task, tw_store_now());
}

const char *ledger_compare_task(struct ledger *ledger, unsigned task, const struct tw_store_task *seen)
{
    const struct entry *entry = &ledger->entry[task];
    const struct tw__task *is = &entry->task;
    struct tw__task_retry retry = ledger_retry_of(ledger, entry);
    const char *wrong = compare_name(task, seen);
    const struct {
        const char *name;
        uint64_t is, expected;
    } of[] = {{"state", seen->state, state_of(ledger, entry, seen->state)},
              {"due_ms", seen->due_ms, is->due_ms},
              {"next_ms", seen->next_ms, is->stage == TW__TASK_BURIED ? 0 : is->next_ms},
              {"place_ms", seen->place_ms, entry->place_ms},
              {"every_ms", seen->every_ms, is->every_ms},
              {"times", seen->times, is->times},
              {"missed", seen->missed, is->missed},
              {"missed_periods", seen->missed_periods, is->missed_periods},
              {"tries", seen->tries, retry.tries},
              {"attempt", seen->attempt, is->stage == TW__TASK_REPLACED ? is->old_attempt : is->attempt},
              {"replaced", seen->replaced, is->stage == TW__TASK_REPLACED},
              {"lapses", seen->lapses, is->lapses},
              {"backoff_ms", seen->backoff_ms, retry.first_ms},
              {"backoff_max_ms", seen->backoff_max_ms, retry.max_ms},
              {"factor", seen->factor_percent, retry.factor_percent},
              {"jitter", seen->jitter, retry.jitter > 0 ? retry.jitter : TW_STORE_NO_JITTER},
              {"max_late_ms", seen->max_late_ms, is->max_late_ms > 0 ? is->max_late_ms : TW_STORE_ON_TIME},
              {"dead_ms", seen->dead_ms, entry->dead_ms}};
    for (size_t i = 0; i < sizeof of / sizeof of[0] && wrong == NULL; i++)
        if (of[i].is != of[i].expected)
            wrong = differ("task %u: %s is %" PRIu64 ", expected %" PRIu64, task, of[i].name, of[i].is,
                           of[i].expected);
    if (wrong == NULL)
        wrong = compare_bytes(task, entry, seen);
    return wrong == NULL ? compare_revision(ledger, task, seen->revision) : wrong;
}

static void read_task(void *arg, const struct tw_store_task *seen)
{
    struct reading *reading = arg;
    reading->last_ms = reading->dead ? seen->dead_ms : seen->place_ms;
    reading->last_revision = seen->revision;
    if (reading->wrong != NULL)
        return;
    if (reading->at == reading->n)
        reading->wrong =
            differ("a task too many: due %" PRIu64 ", revision %" PRIu64, seen->due_ms, seen->revision);
    else
        reading->wrong = ledger_compare_task(reading->ledger, reading->task[reading->at++], seen);
}

static const char *compare_queue(struct ledger *ledger, struct tw_store *store, unsigned queue, bool dead,
                                 uint64_t page)
{
    struct reading reading = {.ledger = ledger, .dead = dead};
    struct tw_store_range range = {.states = dead ? TW_STATE_DEAD : 0, .count = page};
    int64_t seen;
    reading.n = ledger_sort(ledger, queue, dead, reading.task);
    do {
        seen = store_scan(store, ledger_queue(queue * LEDGER_IDS), &range, read_task, &reading);
        range.from_ms = reading.last_ms;
        range.after = reading.last_revision;
    } while (seen > 0 && page > 0 && reading.wrong == NULL);
    if (seen < 0)
        return differ("queue %u: the scan returns %s", queue, tw_store_strerror((int)seen));
    if (reading.wrong == NULL && reading.at != reading.n)
        return differ("queue %u: task %u is lost, as the scan ends", queue, reading.task[reading.at]);
    return reading.wrong;
}

static bool waits(const struct entry *entry, uint64_t now_ms)
{
    return entry->task.stage == TW__TASK_FILED && entry->task.next_ms > now_ms && entry->place_ms > now_ms;
}

static const char *compare_counts(const struct ledger *ledger, struct tw_store *store, unsigned queue)
{
    unsigned tasks[LEDGER_IDS];
    const char *name = ledger_queue(queue * LEDGER_IDS);
    int64_t dead = store_count(store, name, true), others = store_count(store, name, false);
    uint64_t next_ms = 0;
    int error = tw_store_next(store, name, &next_ms);
    if (dead != ledger_sort(ledger, queue, true, tasks))
        return differ("queue %u: %" PRId64 " dead tasks are counted", queue, dead);
    unsigned n = ledger_sort(ledger, queue, false, tasks);
    if (others != n)
        return differ("queue %u: %" PRId64 " tasks are counted, expected %u", queue, others, n);
    unsigned first = 0;
    while (first < n && !waits(&ledger->entry[tasks[first]], ledger->look_ms))
        first++;
    if (error != 0 || next_ms != (first < n ? ledger->entry[tasks[first]].task.next_ms : TW_NEVER))
        return differ("queue %u: next returns %d, due %" PRIu64, queue, error, next_ms);
    return NULL;
}

static void read_queue(void *arg, const char *queue)
{
    unsigned *found = arg;
    for (unsigned i = 0; i < LEDGER_QUEUES; i++)
        *found |= (unsigned)(strcmp(queue, ledger_queue(i * LEDGER_IDS)) == 0) << i;
}

/* A queue is shown if it has a task or is paused. */
static const char *compare_queues(const struct ledger *ledger, struct tw_store *store)
{
    unsigned found = 0, expected = 0, n = 0;
    int64_t count = store_queues(store, read_queue, &found);
    for (unsigned task = 0; task < LEDGER_TASKS; task++)
        expected |= (unsigned)ledger_has(&ledger->entry[task]) << task / LEDGER_IDS;
    for (unsigned i = 0; i < LEDGER_QUEUES; i++) {
        expected |= (unsigned)(store_is_paused(store, ledger_queue(i * LEDGER_IDS)) == 1) << i;
        n += expected >> i & 1;
    }
    return found == expected && count == n ? NULL : differ("queues: %#x, expected %#x", found, expected);
}

/* Revisions have the order of the filings. The largest counts from now on. */
static const char *compare_order(struct ledger *ledger)
{
    for (unsigned i = 0; i < LEDGER_TASKS; i++) {
        const struct entry *one = &ledger->entry[i];
        for (unsigned j = 0; j < LEDGER_TASKS && ledger_has(one); j++) {
            const struct entry *two = &ledger->entry[j];
            if (ledger_has(two) && one->filed < two->filed && one->revision >= two->revision)
                return differ("task %u has revision %" PRIu64 ", but task %u, filed later, has %" PRIu64, i,
                              one->revision, j, two->revision);
        }
        if (ledger_has(one) && one->revision > ledger->top)
            ledger->top = one->revision;
    }
    return NULL;
}

const char *ledger_compare(struct ledger *ledger, struct tw_store *store, uint64_t page)
{
    ledger->look_ms = tw_store_now();
    const char *wrong = NULL;
    for (unsigned queue = 0; queue < LEDGER_QUEUES && wrong == NULL; queue++) {
        wrong = compare_queue(ledger, store, queue, false, page);
        if (wrong == NULL)
            wrong = compare_queue(ledger, store, queue, true, page);
        if (wrong == NULL)
            wrong = compare_counts(ledger, store, queue);
    }
    if (wrong == NULL)
        wrong = compare_queues(ledger, store);
    return wrong == NULL ? compare_order(ledger) : wrong;
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

static void count_entry(const struct entry *entry, uint64_t now_ms, uint64_t step_ms, uint32_t steps,
                        uint64_t *counts);

/* Counts the call that has begun, whose periods are fixed, and then the task as it is after that call. */
static void count_begun(const struct entry *entry, uint64_t now_ms, uint64_t step_ms, uint32_t steps,
                        uint64_t *counts)
{
    struct entry after = *entry;
    struct tw__task *task = &after.task;
    uint64_t first_ms = entry->place_ms;
    if (first_ms > now_ms + step_ms * steps)
        return;
    counts[(first_ms - now_ms - 1) / step_ms]++;
    task->times = tw__task_calls_left(task->every_ms, task->times);
    task->due_ms = tw__task_next_call(task->due_ms, task->missed_periods, task->every_ms, task->times);
    after.place_ms = first_ms > task->due_ms ? first_ms : task->due_ms;
    task->attempt = 0;
    if (task->due_ms != TW_FOREVER)
        count_entry(&after, now_ms, step_ms, steps, counts);
}

/* The calls that have been missed by the first one are counted together with it, and then each call by
 * itself. */
static void count_entry(const struct entry *entry, uint64_t now_ms, uint64_t step_ms, uint32_t steps,
                        uint64_t *counts)
{
    const struct tw__task *task = &entry->task;
    if (task->attempt > 0) {
        count_begun(entry, now_ms, step_ms, steps, counts);
        return;
    }
    uint64_t first_ms = entry->place_ms;
    uint64_t every_ms = task->every_ms > 0 ? task->every_ms : TW_STORE_TIME_MAX;
    uint64_t missed_periods = tw__task_periods_since(task->due_ms, every_ms, first_ms);
    uint64_t calls = task->missed != TW_MISSED_BURST ? 1
                     : missed_periods < task->times  ? missed_periods + 1
                                                     : task->times;
    calls -= task->missed == TW_MISSED_SKIP && missed_periods > 0; /* it makes no late call */
    uint64_t due_ms = task->due_ms + (missed_periods + 1) * every_ms, left = task->times - calls;
    if (first_ms > now_ms + step_ms * steps)
        return;
    counts[(first_ms - now_ms - 1) / step_ms] += calls;
    for (; left > 0 && due_ms <= now_ms + step_ms * steps; left--, due_ms += every_ms)
        counts[(due_ms - now_ms - 1) / step_ms]++;
}

void ledger_forecast(const struct ledger *ledger, unsigned queue, uint64_t now_ms, uint64_t step_ms,
                     uint32_t steps, uint64_t *counts)
{
    memset(counts, 0, steps * sizeof *counts);
    for (unsigned task = queue * LEDGER_IDS; task < (queue + 1) * LEDGER_IDS; task++) {
        const struct entry *entry = &ledger->entry[task];
        if (entry->task.stage == TW__TASK_FILED && entry->task.next_ms > now_ms && entry->place_ms > now_ms)
            count_entry(entry, now_ms, step_ms, steps, counts);
    }
}
