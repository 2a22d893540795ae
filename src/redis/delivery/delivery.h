/* SPDX-License-Identifier: MIT
 *
 * A delivery: from a due task to an entry of its Stream, or an element of its List.
 */
#ifndef TW_REDIS_DELIVERY_H
#define TW_REDIS_DELIVERY_H

#include "keyspace/batch.h"
#include "queues/place.h"

enum { TW__REDIS_ERROR_MAX = 200, TW__REDIS_CALL_SMALL = 32 };

/* One task on its way to its target. */
struct tw__redis_delivery {
    struct tw__redis_batch *batch;
    struct tw__redis_task *task;
    struct tw__redis_route *route;
    struct tw__redis_queue *queue;
    struct tw__redis_plan plan; /* the route's plan, unpacked */
    uint64_t now_ms;
    uint64_t late_since_ms;          /* the time from which the task is late */
    uint64_t missed_periods;         /* further periods that the call stands for */
    uint64_t every;                  /* their length: a handler may give the task another one meanwhile */
    enum tw__redis_defer why;        /* the server's last reply: TW__REDIS_DEFER_NONE, or why it refused */
    char error[TW__REDIS_ERROR_MAX]; /* the text of that refusal */
};
void tw__redis_delivery_init(struct tw__redis_delivery *delivery, struct tw__redis_batch *batch,
                             struct tw__redis_task *task, uint64_t now_ms);

/* How other modules may have changed the queues while the server did something for a delivery. */
enum tw__redis_meanwhile {
    TW__REDIS_UNSEEN, /* no other module was about to look at a queue */
    /* another module was about to look. The task is the same, though its block, its route and its options may
     * be others; other tasks may have been changed or removed */
    TW__REDIS_SEEN,
    TW__REDIS_GONE /* the task was changed or removed, or its queue detached: the delivery is over */
};

/* Checks whether the task's queue is still the value of its key. Returns TW__REDIS_GONE if it is not. */
enum tw__redis_meanwhile tw__redis_call_key(struct tw__redis_delivery *delivery);

/* Asks the server whether a write to the task's queue would be refused now, and sets `why` and `error` as
 * tw__redis_call_send() does. */
enum tw__redis_meanwhile tw__redis_call_may_write(struct tw__redis_delivery *delivery);

/* ---- a call (call.c) ------------------------------------------------------------------------------------- */

/* The arguments of one call. */
struct tw__redis_call {
    RedisModuleString **at, *small[TW__REDIS_CALL_SMALL];
    bool *is_own, small_own[TW__REDIS_CALL_SMALL]; /* is_own: the argument is freed after the call */
    size_t count, room;
};

/* Words that many calls contain, and the names of the fields that a delivery adds. */
enum tw__redis_word {
    TW__REDIS_WORD_MAXLEN,
    TW__REDIS_WORD_ABOUT, /* MAXLEN ~ */
    TW__REDIS_WORD_NEW_ID,
    TW__REDIS_WORD_ID,
    TW__REDIS_WORD_DUE,
    TW__REDIS_WORD_ATTEMPT,
    TW__REDIS_WORD_MISSED_PERIODS,
    TW__REDIS_WORD_FIRST, /* attempt */
    TW__REDIS_WORDS
};

/* The bytes of such a word. */
size_t tw__redis_call_word_size(enum tw__redis_word word);

/* Creates the strings of these words. To be called when the module is loaded. */
void tw__redis_call_start(void);

/* Starts a call without arguments and with room for `most` of them. */
void tw__redis_call_init(struct tw__redis_call *call, size_t most);

/* Adds an argument. The call frees its own strings (add_own). A kept string (add_kept) belongs to somebody
 * else and outlives the call. */
void tw__redis_call_add_kept(struct tw__redis_call *call, RedisModuleString *string);
void tw__redis_call_add_own(struct tw__redis_call *call, RedisModuleString *string);
void tw__redis_call_add_word(struct tw__redis_call *call, enum tw__redis_word word);

/* Adds the fields tw.id, tw.due, tw.attempt and, if the call stands for further periods, tw.missed-periods;
 * adds the strings of the payload. */
void tw__redis_call_add_about(struct tw__redis_call *call, const struct tw__redis_delivery *delivery);
void tw__redis_call_add_payload(struct tw__redis_call *call, const struct tw__redis_task *task);

/* Calls the server and frees the arguments. Afterwards `why` and `error` of the delivery hold the server's
 * reply, also if the task is gone. */
enum tw__redis_meanwhile tw__redis_call_send(struct tw__redis_call *call, const char *command,
                                             struct tw__redis_delivery *delivery);

/* ---- tasks that no Stream can take (size.c) -------------------------------------------------------------- */

/* Returns whether no Stream will ever take the task. A List takes it. */
bool tw__redis_size_is_too_big(const struct tw__redis_delivery *delivery);

/* Writes the error to `error` with which the server would refuse such a task. */
void tw__redis_size_error(struct tw__redis_delivery *delivery);

/* ---- tasks that are late (late.c) ------------------------------------------------------------------------ */

/* MAXLATE and MISSED of a task with a target. Of a task for workers TW.TAKE decides. */

/* Passes over the periods that are too late, or that `skip` leaves out. Returns whether there were any; the
 * task has then left, or is filed for its next period. Otherwise sets `missed_periods` of the delivery. A task
 * that its target has refused itself is never too late, and its `missed_periods` stays.
 * Example: EVERY 1000 and MAXLATE 500, due at 0, and now it is 2600. The periods 0, 1000 and 2000 are
 * dropped. */
bool tw__redis_late_passes(struct tw__redis_delivery *delivery);

/* The numbers of the task while its target answers: with the tries of the target, and the missed periods of the
 * call in the periods that the task has by now. */
struct tw__task tw__redis_late_numbers(const struct tw__redis_delivery *delivery);

/* The target has refused the task: its call has begun, and keeps these missed periods. The first refusal is
 * logged, so that a restart does not make the call anew, and each further one is not. The block of the task may
 * be another one afterwards. Requires: the task is filed nowhere. */
void tw__redis_late_refused(struct tw__redis_delivery *delivery, uint64_t missed_periods);

/* Ends a delivery: the task leaves, or is filed for its next time. Requires: the task is filed nowhere. */
void tw__redis_late_done(struct tw__redis_delivery *delivery);

/* ---- the whole way (deliver.c) --------------------------------------------------------------------------- */

/* Ends a batch of deliveries (batch.h): replicates which tasks have left their queues, sends keyspace
 * notifications, removes the queues that are empty, and closes the batch. */
void tw__redis_deliver_finish(struct tw__redis_batch *batch);

/* Delivers a due task that was taken out and is filed nowhere. Returns TW__REDIS_DEFER_NONE: the task is then
 * gone, filed again, held by its route, stopped, ready or dead. Otherwise returns why the server can deliver
 * nothing at all now; the task is then still filed nowhere, and *task its block, which may be another one. */
enum tw__redis_defer tw__redis_deliver(struct tw__redis_batch *batch, struct tw__redis_task **task,
                                       enum tw__redis_taken taken, uint64_t now_ms);

/* ---- the client that the server asks last after a tick (asked.c) ----------------------------------------- */

/* Needed for Redis 7.0 alone; newer servers get no call. */

/* The keys whose waiting clients the server asks after a tick. The later one in this list is the better one to
 * wait on. */
enum tw__redis_asked { TW__REDIS_ASKED_LIST, TW__REDIS_ASKED_STREAM, TW__REDIS_ASKED_QUEUE };

/* Looks at the server's version. To be called when the module is loaded. */
void tw__redis_asked_start(void);

/* Notes that the tick adds to a target, or tells the server that a queue has ready tasks. */
void tw__redis_asked_note(enum tw__redis_asked what, int db, RedisModuleString *key);

/* Sees to it that a client of ours is asked last. To be called at the end of the tick: whatever signals a key
 * as ready comes before. */
void tw__redis_asked_last(RedisModuleCtx *ctx);

/* Frees that client. To be called when the event loop wakes up, before any command. */
void tw__redis_asked_over(void);

#endif
