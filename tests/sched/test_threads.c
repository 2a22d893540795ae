/* SPDX-License-Identifier: MIT
 *
 * The storm: four threads add, set, move, cancel, cancel and wait, drain and read statistics. At last one of
 * them stops the scheduler in the middle of all this. In the end every task must be accounted for exactly
 * once: it has fired, was cancelled or handed over. The test is made for ThreadSanitizer and runs on each
 * kind of executor.
 *
 *     test_sched_threads [--seconds N]        in all; default 6
 */
#include "outcome.h"
#include <tickwheel/sched.h>

#include "tests/support/eventually.h"
#include "tests/support/random.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PRODUCERS = 4, TICKETS = 400000, KEYS = 64, OWN = 256 };

/* A ticket is the argument of one task, and counts the task's calls and ends. */
struct ticket {
    _Atomic uint32_t calls;
    _Atomic uint32_t ends; /* cancelled, handed over or replaced */
    uint32_t wanted;       /* calls if nobody ends the task */
    _Atomic bool running;
    bool filed;
};

static struct ticket *tickets;
static _Atomic uint32_t next_ticket;
static struct tw_sched *sched;
static _Atomic bool over;

static void fail(const char *what)
{
    fprintf(stderr, "test_sched_threads: %s\n", what);
    exit(1);
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    struct ticket *ticket = task->arg;
    if (of != sched || atomic_exchange(&ticket->running, true))
        fail("a task runs twice at once");
    atomic_fetch_add(&ticket->calls, 1);
    if (task->due_ns > tw_sched_now(of))
        fail("a task is early");
    atomic_store(&ticket->running, false);
}

static void on_visit(void *arg, const struct tw_task *task)
{
    struct ticket *ticket = task->arg;
    (void)arg;
    atomic_fetch_add(&ticket->ends, 1);
}

/* ---- producers ------------------------------------------------------------------------------------------- */

struct producer {
    pthread_t thread;
    struct rng rng;
    uint64_t id[OWN]; /* ids of its own, many of them stale */
    struct ticket *ticket[OWN];
};

static struct ticket *take_ticket(void)
{
    uint32_t number = atomic_fetch_add(&next_ticket, 1);
    return number < TICKETS ? &tickets[number] : NULL;
}

static void add(struct producer *self, struct ticket *ticket)
{
    uint32_t place = (uint32_t)rng_below(&self->rng, OWN);
    uint64_t delay_ns = rng_below(&self->rng, 20000000), id = 0;
    int error;
    ticket->wanted = 1;
    if (rng_below(&self->rng, 10) == 0) {
        struct tw_every every = {.first_ns = delay_ns,
                                 .period_ns = 1000000 + delay_ns / 4,
                                 .times = 3,
                                 .missed = (enum tw_missed)rng_below(&self->rng, 3)};
        ticket->wanted = 3;
        error = tw_sched_add_every(sched, &every, on_task, ticket, &id);
    } else {
        error = tw_sched_add_in(sched, delay_ns, on_task, ticket, &id);
    }
    if (error == TW_ESTOPPED)
        atomic_store(&over, true);
    else if (error != 0)
        fail(tw_sched_strerror(error));
    ticket->filed = error == 0;
    if (error == 0) {
        self->id[place] = id;
        self->ticket[place] = ticket;
    }
}

static const char *random_key(struct producer *self, char *key)
{
    snprintf(key, 16, "key-%d", (int)rng_below(&self->rng, KEYS));
    return key;
}

static void set(struct producer *self, struct ticket *ticket)
{
    char key[16];
    void *old = NULL;
    random_key(self, key);
    ticket->wanted = 1;
    int error =
        tw_sched_key_put_in(sched, tw_text(key), rng_below(&self->rng, 20000000), on_task, ticket, &old);
    if (error == TW_ESTOPPED)
        atomic_store(&over, true);
    else if (error != 0)
        fail(tw_sched_strerror(error));
    ticket->filed = error == 0;
    if (old != NULL) /* if its task runs now, or has run, this is not its end: but it has an end */
        atomic_fetch_add(&((struct ticket *)old)->ends, 0x10000);
}

static void cancel(struct producer *self)
{
    uint32_t place = (uint32_t)rng_below(&self->rng, OWN);
    struct ticket *ticket = self->ticket[place];
    enum tw_cancel found;
    if (ticket == NULL)
        return;
    if (rng_below(&self->rng, 2)) {
        found = tw_sched_cancel(sched, self->id[place]);
    } else {
        tw_sched_cancel_wait(sched, self->id[place], &found);
        if (atomic_load(&ticket->running))
            fail("it still runs");
    }
    if (found == TW_CANCEL_CANCELLED)
        atomic_fetch_add(&ticket->ends, 1);
    if (found == TW_CANCEL_AT_WORK)
        atomic_fetch_add(&ticket->ends, 0x10000); /* this call was its last, or it makes one call fewer */
}

static void remove_key(struct producer *self)
{
    char key[16];
    void *value;
    random_key(self, key);
    if (tw_sched_key_cancel(sched, tw_text(key), &value) == TW_CANCEL_CANCELLED)
        atomic_fetch_add(&((struct ticket *)value)->ends, 1);
}

static void move(struct producer *self)
{
    char key[16];
    uint64_t delay_ns = rng_below(&self->rng, 20000000);
    if (rng_below(&self->rng, 2))
        tw_sched_move_in(sched, self->id[rng_below(&self->rng, OWN)], delay_ns);
    else
        tw_sched_key_move_in(sched, tw_text(random_key(self, key)), delay_ns);
}

static void *produce(void *arg)
{
    struct producer *self = arg;
    while (!atomic_load(&over)) {
        uint64_t choice = rng_below(&self->rng, 100);
        struct ticket *ticket = choice < 60 ? take_ticket() : NULL;
        struct tw_sched_info stats;
        uint64_t counts[20];
        if (ticket != NULL)
            choice < 45 ? add(self, ticket) : set(self, ticket);
        else if (choice < 75)
            cancel(self);
        else if (choice < 80)
            remove_key(self);
        else if (choice < 98)
            move(self);
        else if (choice == 98)
            tw_sched_stats(sched, &stats, sizeof stats);
        else if (rng_below(&self->rng, 20) == 0)
            tw_sched_forecast(sched, 1000000, 20, counts);
        else if (rng_below(&self->rng, 50) == 0)
            tw_sched_drain(sched, on_visit, NULL, NULL);
    }
    return NULL;
}

/* ---- executors of the caller ----------------------------------------------------------------------------- */

enum { QUEUE = 1 << 16 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    uint64_t id[QUEUE];
    uint32_t head, tail;
    bool quit;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void execute(void *arg, struct tw_sched *of, uint64_t id)
{
    (void)arg, (void)of;
    pthread_mutex_lock(&queue.lock);
    if (queue.tail - queue.head == QUEUE)
        fail("the queue is full");
    queue.id[queue.tail++ % QUEUE] = id;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

static void *executor(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        while (queue.head == queue.tail && !queue.quit)
            eventually_woken(&queue.filled, &queue.lock);
        if (queue.head == queue.tail)
            break;
        uint64_t id = queue.id[queue.head++ % QUEUE];
        pthread_mutex_unlock(&queue.lock);
        tw_sched_run(sched, id);
        pthread_mutex_lock(&queue.lock);
    }
    pthread_mutex_unlock(&queue.lock);
    return NULL;
}

/* ---- one storm ------------------------------------------------------------------------------------------- */

static void fail_ticket(uint32_t i, uint32_t wanted, uint32_t calls, uint32_t ends)
{
    fprintf(stderr, "test_sched_threads: ticket %u wanted %u calls, had %u, and %u other ends\n", i, wanted,
            calls, ends);
    fail("a task is not accounted for exactly once");
}

/* Each filed ticket has either made all its calls or come to one end. It may have done both if the end came
 * while it was running. */
static void check_tickets(void)
{
    uint32_t count = atomic_load(&next_ticket) < TICKETS ? atomic_load(&next_ticket) : TICKETS;
    for (uint32_t i = 0; i < count; i++) {
        const struct ticket *ticket = &tickets[i];
        uint32_t calls = atomic_load(&ticket->calls), ends = atomic_load(&ticket->ends);
        bool blurred = ends >= 0x10000;
        if (!ticket->filed && (calls > 0 || ends > 0))
            fail("a refused task was seen again");
        if (!ticket->filed || blurred)
            continue;
        if (ends > 1 || calls > ticket->wanted || (ends == 0 && calls < ticket->wanted) ||
            (ends == 1 && calls == ticket->wanted))
            fail_ticket(i, ticket->wanted, calls, ends);
    }
}

static void check_stats(uint64_t *fired)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    if (stats.pending != 0 || stats.running != 0 || stats.keys != 0)
        fail("something is left after the stop");
    if (stats.added + stats.again != stats.fired + stats.cancelled + stats.handed)
        fail("the counts do not add up");
    *fired += stats.fired;
}

static uint64_t storm(const struct tw_sched_options *options, uint64_t seed, unsigned executors, uint64_t ns)
{
    static struct producer producers[PRODUCERS];
    pthread_t threads[4];
    uint64_t fired = 0;
    memset(tickets, 0, TICKETS * sizeof *tickets);
    atomic_store(&next_ticket, 0);
    atomic_store(&over, false);
    queue.quit = false;
    if (tw_sched_new(&sched, options) != 0)
        fail("no scheduler");
    for (unsigned i = 0; i < executors; i++)
        pthread_create(&threads[i], NULL, executor, NULL);
    for (int i = 0; i < PRODUCERS; i++) {
        memset(&producers[i], 0, sizeof producers[i]);
        rng_init(&producers[i].rng, seed * 10 + (uint64_t)i);
        pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
    }
    any_moment(ns / 1000);
    tw_sched_stop(sched, 0, on_visit, NULL);
    for (uint32_t i = 0; i < TICKETS; i++)
        if (atomic_load(&tickets[i].running))
            fail("a callback runs after the stop");
    atomic_store(&over, true);
    for (int i = 0; i < PRODUCERS; i++)
        eventually_joined(producers[i].thread);
    pthread_mutex_lock(&queue.lock);
    queue.quit = true;
    pthread_cond_broadcast(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
    for (unsigned i = 0; i < executors; i++)
        eventually_joined(threads[i]);
    check_tickets();
    check_stats(&fired);
    tw_sched_free(sched);
    return fired;
}

int main(int count, char **words)
{
    uint64_t seconds = count > 2 && strcmp(words[1], "--seconds") == 0 ? strtoull(words[2], NULL, 0) : 6;
    static const struct tw_sched_options kinds[] = {
        {.shards = 0},
        {.shards = 1},
        {.shards = 8, .workers = 2},
        {.execute = execute},
        {.shards = 3, .workers = 3},
        {.shards = 1, .workers = 2, .tick_ns = 100000},
        {.shards = 2, .execute = execute},
        {.shards = 4, .clock = TW_SCHED_CLOCK_MONOTONIC, .late_ns = 1},
        {.shards = 2, .workers = 2, .max_pending = 10000000},
    };
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    uint64_t slice = seconds * 1000000000 / KINDS, seed = (uint64_t)time(NULL), fired = 0;
    int storms = 0;
    tickets = calloc(TICKETS, sizeof *tickets);
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    for (int k = 0; k < KINDS; k++)
        for (uint64_t left = slice; left > 0; storms++) {
            uint64_t ns = left < 1000000000 ? left : 1000000000;
            fired += storm(&kinds[k], seed++, kinds[k].execute != NULL ? 2 : 0, ns);
            left -= ns;
        }
    printf("%d storms, %" PRIu64 " calls, every task accounted for\n", storms, fired);
    free(tickets);
    return 0;
}
