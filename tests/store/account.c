/* SPDX-License-Identifier: MIT
 *
 * One pipe takes the notes of all processes, so a note that was written before another one began comes before
 * it. A process that is killed leaves at most one intent without its acknowledgement for each task, and nobody
 * else changes that task: it is unsure, and only the rules for calls hold for it.
 *
 *     A1   each task that was acknowledged and is due was called, and its last call was answered
 *     A2   a call comes again only if the one before was answered with a retry, or its process was killed, and
 *          begins with the first attempt only as often as a put or a move has asked for its due time
 *     A3   no attempt of a call is missing, unless its process was killed
 *     A4   calls of a task do not overlap, and each has a newer revision than the one before
 *     A5   a task is not called before its due time, and only for a due time that somebody has asked for
 *     A6   a task that was cancelled before a handler had it is not called after that, and is not in the file
 *     A7   a task that was answered with `done` is not in the file, and a dead one is there
 */
#include "account.h"
#include "outcomes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[300];

static const char *mistake(const struct note *note, const char *rule)
{
    snprintf(text, sizeof text,
             "%s: task %" PRIx64 ", note %" PRIu64 " (kind %d of process %u, revision %" PRIu64 ", attempt %u)",
             rule, note->id, note->order, (int)note->kind, note->who, note->revision, note->attempt);
    return text;
}

void account_add(struct account *account, const struct note *note)
{
    if (account->n == account->room) {
        account->room = account->room > 0 ? 2 * account->room : 4096;
        account->notes = realloc(account->notes, account->room * sizeof *account->notes);
        if (account->notes == NULL)
            abort();
    }
    account->notes[account->n++] = *note;
    account->notes[account->n - 1].order = account->n;
    if (note->who >= account->processes) {
        account->killed = realloc(account->killed, (note->who + 1) * sizeof *account->killed);
        if (account->killed == NULL)
            abort();
        while (account->processes <= note->who)
            account->killed[account->processes++] = 0;
    }
    if (note->kind == NOTE_KILLED)
        account->killed[note->who] = account->n;
}

bool account_killed(const struct account *account, unsigned who, uint64_t before)
{
    return account->killed[who] != 0 && account->killed[who] < before;
}

/* A task that the file has at the end. */
struct remainder {
    uint64_t id, due_ms;
    bool dead;
};

void account_fini(struct account *account)
{
    free(account->notes);
    free(account->killed);
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* The notes of one task, in their order. */
struct story {
    const struct account *account;
    const struct note *notes;
    size_t n;
    uint64_t far_ms;
};

/* The end of the call that began at this note, NULL: there is none. */
static const struct note *end_of(const struct story *story, const struct note *begin)
{
    for (const struct note *note = begin + 1; note < story->notes + story->n; note++)
        if (note->kind == NOTE_END && note->who == begin->who && note->revision == begin->revision &&
            note->attempt == begin->attempt)
            return note;
    return NULL;
}

/* Whether a call is a further attempt of the one before. Each put and each move begins with the first one. */
static bool is_again(const struct note *last, const struct note *begin)
{
    return begin->due_ms == last->due_ms && begin->attempt > last->attempt;
}

/* How often somebody had asked for the due time of a call before it began. */
static unsigned count_asked(const struct story *story, const struct note *begin)
{
    unsigned asked = 0;
    for (const struct note *note = story->notes; note < begin; note++)
        asked += note->kind == NOTE_INTENT && note->due_ms == begin->due_ms;
    return asked;
}

/* How many of the calls of this due time, up to this one, were no further attempts. */
static unsigned count_begun(const struct story *story, const struct note *begin)
{
    unsigned begun = 0;
    const struct note *last = NULL;
    for (const struct note *note = story->notes; note <= begin; note++) {
        if (note->kind != NOTE_BEGIN)
            continue;
        begun += note->due_ms == begin->due_ms && (last == NULL || !is_again(last, note));
        last = note;
    }
    return begun;
}

static const char *check_next_call(const struct story *story, const struct note *last, const struct note *begin)
{
    const struct note *end = end_of(story, last);
    bool killed = account_killed(story->account, last->who, begin->order);
    if (!killed && (end == NULL || end > begin))
        return mistake(begin, "A4: the calls overlap");
    if (begin->revision < last->revision || (begin->revision == last->revision && !killed))
        return mistake(begin, "A4: an older revision comes after a newer one");
    if (!is_again(last, begin))
        return NULL;
    if (!killed && end->answer != TW_ANSWER_FAILED)
        return mistake(begin, "A2: it is called again after its answer");
    return !killed && begin->attempt != last->attempt + 1
               ? mistake(begin, "A3: an attempt is missing, and its process lives")
               : NULL;
}

static const char *check_calls(struct account *account, const struct story *story)
{
    const struct note *last = NULL;
    for (const struct note *note = story->notes; note < story->notes + story->n; note++) {
        if (note->kind != NOTE_BEGIN)
            continue;
        if (note->at_ms < note->due_ms || note->due_ms >= story->far_ms)
            return mistake(note, "A5: it is called before it is due");
        if (count_asked(story, note) == 0)
            return mistake(note, "A5: nobody has asked for this due time");
        if (count_begun(story, note) > count_asked(story, note))
            return mistake(note, "A2: it begins anew, and nobody has asked for that");
        const char *wrong = last != NULL ? check_next_call(story, last, note) : NULL;
        if (wrong != NULL)
            return wrong;
        account->calls++;
        account->again += last != NULL && is_again(last, note);
        last = note;
    }
    return NULL;
}

/* ---- changes --------------------------------------------------------------------------------------------- */

/* A task after the changes that were acknowledged. */
struct outcome {
    bool sure, exists;
    uint64_t due_ms;
    const struct note *cancel; /* its acknowledgement, if it was the last change */
    const struct note *last;   /* of the last change that had an effect */
};

static void follow(struct outcome *outcome, const struct note *intent, const struct note *ack)
{
    outcome->sure = true;
    if (intent->verb == TW_STORE_VERB_CANCEL) {
        outcome->exists = false;
        outcome->cancel = ack;
    } else if (ack->result == 1) {
        outcome->exists = true;
        outcome->due_ms = intent->due_ms;
        outcome->cancel = NULL;
        outcome->last = ack;
    }
}

static struct outcome read_changes(const struct story *story)
{
    struct outcome outcome = {.sure = false};
    const struct note *intent = NULL;
    for (const struct note *note = story->notes; note < story->notes + story->n; note++) {
        if (note->kind == NOTE_INTENT) {
            intent = note;
            outcome.sure = false;
        } else if (note->kind == NOTE_ACK && intent != NULL) {
            follow(&outcome, intent, note);
        }
    }
    return outcome;
}

/* A worker may have had the job already when the task was cancelled, if the cancel said so. */
static const char *check_cancelled(const struct story *story, const struct outcome *outcome,
                                   const struct remainder *left)
{
    for (const struct note *note = outcome->cancel; note < story->notes + story->n; note++)
        if (note->kind == NOTE_BEGIN && outcome->cancel->result != TW_CANCEL_AT_WORK)
            return mistake(note, "A6: it was cancelled and is called");
    return left != NULL ? mistake(outcome->cancel, "A6: it was cancelled and is in the file") : NULL;
}

static const struct note *last_call(const struct story *story)
{
    for (const struct note *note = story->notes + story->n; note-- > story->notes;)
        if (note->kind == NOTE_BEGIN)
            return note;
    return NULL;
}

static const char *check_answered(const struct story *story, const struct outcome *outcome,
                                  const struct remainder *left)
{
    const struct note *begin = last_call(story);
    if (begin == NULL || begin->due_ms != outcome->due_ms)
        return mistake(outcome->last, "A1: it is due and was never called");
    const struct note *end = end_of(story, begin);
    if (end == NULL)
        return mistake(begin, "A1: its last call has no end");
    bool dies =
        end->answer == TW_ANSWER_DEAD || (end->answer == TW_ANSWER_FAILED && end->attempt >= end->tries);
    if (end->answer == TW_ANSWER_FAILED && !dies)
        return mistake(end, "A1: the retry did not come");
    if (dies != (left != NULL && left->dead))
        return mistake(end, "A7: it is not in the state of its last answer");
    return !dies && left != NULL ? mistake(end, "A7: it is done and in the file") : NULL;
}

static const char *check_outcome(struct account *account, const struct story *story,
                                 const struct remainder *left)
{
    struct outcome outcome = read_changes(story);
    account->tasks++;
    if (!outcome.sure) {
        account->unsure++;
        return NULL;
    }
    if (outcome.cancel != NULL) {
        account->cancelled++;
        return check_cancelled(story, &outcome, left);
    }
    if (outcome.due_ms < story->far_ms)
        return check_answered(story, &outcome, left);
    return left != NULL && !left->dead && left->due_ms == outcome.due_ms
               ? NULL
               : mistake(outcome.last, "A1: it waits for a later time and is not in the file");
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static int compare_notes(const void *one, const void *two)
{
    const struct note *a = one, *b = two;
    return a->id != b->id ? (a->id > b->id) - (a->id < b->id) : (a->order > b->order) - (a->order < b->order);
}

static const struct remainder *find_left(const struct remainder *left, size_t n, uint64_t id)
{
    while (n > 0) {
        size_t half = n / 2;
        if (left[half].id == id)
            return &left[half];
        if (left[half].id < id) {
            left += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return NULL;
}

static const char *check_tasks(struct account *account, const struct remainder *left, size_t n, uint64_t far_ms)
{
    const char *wrong = NULL;
    qsort(account->notes, account->n, sizeof *account->notes, compare_notes);
    for (size_t i = 0, end; i < account->n && wrong == NULL; i = end) {
        uint64_t id = account->notes[i].id;
        for (end = i; end < account->n && account->notes[end].id == id;)
            end++;
        struct story story = {account, account->notes + i, end - i, far_ms};
        if (id == 0) /* notes about processes */
            continue;
        wrong = check_calls(account, &story);
        if (wrong == NULL)
            wrong = check_outcome(account, &story, find_left(left, n, id));
    }
    return wrong;
}

struct remainders {
    struct remainder *first;
    size_t n;
};

static void collect(void *arg, const struct tw_store_task *task)
{
    struct remainders *left = arg;
    struct remainder *one = &left->first[left->n++];
    memcpy(&one->id, task->id.data, sizeof one->id);
    one->due_ms = task->due_ms;
    one->dead = task->state == TW_STATE_DEAD;
}

static int compare_ids(const void *one, const void *two)
{
    const struct remainder *a = one, *b = two;
    return (a->id > b->id) - (a->id < b->id);
}

const char *account_check(struct account *account, struct tw_store *store, uint64_t far_ms)
{
    struct tw_store_range dead = {.states = TW_STATE_DEAD};
    int64_t n = store_count(store, "q", false) + store_count(store, "q", true);
    struct remainders left = {calloc((size_t)n + 1, sizeof *left.first), 0};
    store_scan(store, "q", NULL, collect, &left);
    store_scan(store, "q", &dead, collect, &left);
    qsort(left.first, left.n, sizeof *left.first, compare_ids);
    const char *wrong = check_tasks(account, left.first, left.n, far_ms);
    free(left.first);
    return wrong;
}
