/* SPDX-License-Identifier: MIT
 *
 * The start and the end of a test of queues: counted memory, and ids, strings and tasks to put into
 * queues.
 */
#ifndef TW_TESTS_REDIS_FIXTURE_H
#define TW_TESTS_REDIS_FIXTURE_H

#include <src/redis/queues/lease.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <task/periods.h>
#include <task/state.h>

/* ---- memory that is counted ------------------------------------------------------------------------------ */

extern size_t bytes_out;
extern long blocks_out;
extern const struct tw__redis_memory counted;
size_t counted_usable(void *bytes);
void counted_free(void *old);
void *counted_alloc(size_t size);
void *counted_realloc(void *old, size_t size);

/* Makes a string such as routes and queues keep for the server; and counts the strings that they have not
 * given back. */
extern long targets_out;
void *new_target(void);

/* ---- queues ---------------------------------------------------------------------------------------------- */

#define START UINT64_C(1700000000000)
enum { MONOTONIC = 5000 }; /* the monotonic clock at the start */

extern struct tw__redis_queues *all;
void open_all(void);
/* Checks that nothing is left of the queues. Requires: the reaper has all queues. */
void close_all(void);
void close_queue(struct tw__redis_queue *queue);
/* For a test of one queue, which is attached. */
struct tw__redis_queue *open_one(void);
void close_one(struct tw__redis_queue *queue);

/* Derives the secret of the tables from the seed too, so that a run can be repeated. */
void use_seed(void);

/* ---- things to put in ------------------------------------------------------------------------------------ */

struct tw__redis_bytes text(const char *string);
void assert_bytes_equal(struct tw__redis_bytes a, struct tw__redis_bytes b);

/* Strings of many lengths. The number of a string, to which *arg is added, decides its contents. */
extern char letters[20000];
void fill_letters(void);
struct tw__redis_bytes string_of(void *arg, uint32_t i);

/* Ids of many lengths, the empty id too. An id is valid until the next call. */
struct tw__redis_bytes id_of(unsigned i);

enum { PLANS = 10, FIRST_OF_WORKERS = 8 }; /* from that plan on, the tasks are for workers */
extern const struct tw__redis_plan plan_of[PLANS];
/* Whether a payload of so many strings suits a kind of target. */
bool strings_suit(uint8_t kind, uint32_t count);
void assert_plans_equal(const struct tw__redis_plan *a, const struct tw__redis_plan *b);

/* Puts a task for a List, or for workers, into a queue, filed at `now`. */
struct tw__redis_task *put_one(struct tw__redis_queue *queue, const char *id, uint64_t due, uint64_t now);
struct tw__redis_task *put_work(struct tw__redis_queue *queue, const char *id, uint64_t due, uint64_t now);

/* Takes the next task of all that are due, and asserts that it is this one. NULL: there is none. */
void assert_take(uint64_t now, enum tw__redis_taken expected, const struct tw__redis_task *wanted);
void assert_taken(uint64_t now, const struct tw__redis_task *wanted);

/* The task with this id, or NULL. */
struct tw__redis_task *find(const struct tw__redis_queue *queue, const char *id);

void assert_attempts_equal(const struct tw__redis_attempt *a, const struct tw__redis_attempt *b);

/* ---- verbs ----------------------------------------------------------------------------------------------- */

struct lease {
    uint64_t token;
    uint32_t ms;
    struct tw__redis_bytes worker;
};

/* Gives a ready task to a worker, as TW.TAKE does. */
struct tw__redis_task *begin_lease(struct tw__redis_queue *of, struct tw__redis_task *task,
                                   const struct lease *lease, uint64_t now_ms, struct tw__redis_buffer *log);
/* The turn of a task that is taken or delivered now. */
struct tw__task_turn turn_of(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                             uint64_t now_ms);
/* Passes over a ready task, as TW.TAKE does. */
void do_pass_over(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                  struct tw__redis_buffer *log);
void do_move(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t due_ms, uint64_t now_ms,
             struct tw__redis_buffer *log);
struct tw__redis_task *do_promote(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                                  struct tw__redis_buffer *log);
/* `renewed`: the lease has run out, and is as long as before. */
void do_extend(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t ms, bool renewed,
               uint64_t now_ms, struct tw__redis_buffer *log);
/* An attempt fails or lapses, and the next one comes at `at_ms`. */
void do_fail(struct tw__redis_queue *of, struct tw__redis_task *task, bool lapsed, struct tw__redis_bytes error,
             uint64_t at_ms, uint64_t now_ms, struct tw__redis_buffer *log);
struct tw__redis_task *do_give_back(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                                    struct tw__redis_buffer *log);
void do_put_off(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t at_ms, uint64_t now_ms,
                struct tw__redis_buffer *log);
/* The attempt before which a task stands has ended at `end_ms`. Returns when the task comes. */
uint64_t do_end_replaced(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t end_ms,
                         uint64_t now_ms, struct tw__redis_buffer *log);
/* The outcome of the end of a call: of a delivery, of an acknowledgement, or of a late one if nobody has the
 * task. */
struct tw__task_outcome outcome_of_end(struct tw__task numbers, uint64_t now_ms);
/* The call of a task is done, or dies after so many attempts, in whichever state it is. */
void do_done(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
             struct tw__redis_buffer *log);
void do_kill(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t attempts,
             struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log);
/* The same, and a repeating task dies as a whole. */
void do_kill_series(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t attempts,
                    struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log);

#endif
