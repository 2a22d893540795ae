/* SPDX-License-Identifier: MIT
 *
 * A task in numbers, the verbs, and their outcomes.
 */
#ifndef TW_TASK_TASK_H
#define TW_TASK_TASK_H

#include "backoff.h"
#include "conditions.h"
#include "words.h"

/* The stage of a task, as it is stored. Whether a filed task is waiting or ready, the clock says. The order is
 * that of the module's snapshots, where FILED is 0. */
enum tw__task_stage {
    TW__TASK_NONE,    /* there is no such task */
    TW__TASK_FILED,   /* it waits for `next`, or is ready */
    TW__TASK_TAKEN,   /* an attempt is under way */
    TW__TASK_BURIED,  /* dead */
    TW__TASK_REPLACED /* an attempt is under way, and this newer task stands behind it */
};

/* The numbers of a task. Id, payload, worker and error stay with the home. The members from `token` on belong
 * to the attempt under way: also while the task is REPLACED, when all others belong to the new task. */
struct tw__task {
    enum tw__task_stage stage;
    bool has_target;          /* the home delivers it, and no worker takes it */
    uint64_t due_ms, next_ms; /* next_ms: of a leased task, as before the take */
    uint32_t attempt, lapses;
    uint64_t missed_periods;  /* further periods that the call stands for */
    uint64_t every_ms, times; /* every_ms 0: once, and then times is 1; times may be TW_FOREVER */
    enum tw_missed missed;
    uint64_t max_late_ms; /* TW_FOREVER: no limit */
    struct tw__task_retry retry;
    uint64_t token;  /* of the lease; FILED: left behind by a lapse, or 0 */
    uint64_t end_ms; /* of the lease; TW_FOREVER: it ends with the run */
    uint32_t lease_ms;
    uint32_t old_attempt; /* REPLACED: the number of the attempt under way */
};

/* Whether an attempt is under way. */
static inline bool tw__task_stage_is_leased(enum tw__task_stage stage)
{
    return stage == TW__TASK_TAKEN || stage == TW__TASK_REPLACED;
}

static inline bool tw__task_is_leased(const struct tw__task *task)
{
    return tw__task_stage_is_leased(task->stage);
}

enum tw__task_verb {
    TW__TASK_PUT, /* and send */
    TW__TASK_MOVE,
    TW__TASK_CANCEL,
    TW__TASK_TAKE,
    TW__TASK_TOUCH,
    TW__TASK_DONE,
    TW__TASK_FAILED,
    TW__TASK_DEAD, /* failed for good */
    TW__TASK_BACK,
    TW__TASK_LAPSE,
    TW__TASK_DUE,       /* a task with a target is about to be delivered: its periods take their turn */
    TW__TASK_DELIVERED, /* a target has accepted the task */
    TW__TASK_REFUSED,   /* a target has refused it; at_ms is its next try */
    TW__TASK_PROMOTE,
    TW__TASK_REPLAY,
    TW__TASK_PURGE
};

/* A call of a verb. Members that the verb does not name may be zero. */
struct tw__task_call {
    enum tw__task_verb verb;
    unsigned conditions; /* put: of conditions.h; move: GT, LT. They fit together */
    bool timed;          /* fail, back, replay: at_ms is given */
    bool elsewhere;      /* put: another kind, target or group than that of the stored task */
    uint64_t at_ms;      /* put, move: the due time */
    uint64_t token;      /* take: the new one; touch and answers: that of the caller; lapse: no meaning */
    uint32_t lease_ms;   /* take, touch */
    const struct tw__task *options; /* put: the members has_target to retry, but not due_ms to missed_periods */
};

enum tw__task_reply {
    TW__TASK_NO, /* nothing has changed: a condition, another token, another state */
    TW__TASK_YES,
    TW__TASK_MISSING,   /* nothing has changed: there is no such task */
    TW__TASK_IS_DEAD,   /* nothing has changed: a move of a dead task */
    TW__TASK_CANCELLED, /* a cancel has removed it, and no work comes */
    TW__TASK_AT_WORK,   /* a cancel has removed it, and its work may happen */
    TW__TASK_LATE,      /* take, due: no call, because periods were dropped or skipped */
    TW__TASK_DIED
};

/* How often each of these happened (the contract, "Counts"). */
struct tw__task_tally {
    uint64_t delivered, done, failed, lapsed, back, died, dropped, skipped, coalesced, replaced;
};

struct tw__task_outcome {
    enum tw__task_reply reply;
    uint64_t value_ms;    /* of answers: `next`; of touch: the new end; of a death: 0 */
    struct tw__task task; /* as it is afterwards; NONE: it is gone, or never was */
    bool filed;           /* it takes a new place in the order: the later of next_ms and filed_ms */
    uint64_t filed_ms;
    bool renewed; /* put: the payload is that of the call */
    bool clears_error, clears_worker;
    bool fails;           /* the error of the call stays, with `dead` if a period has died, else with `task` */
    struct tw__task dead; /* BURIED: a period that has died, as a task of its own. NONE: nothing else is set */
    struct tw__task_tally tally;
};

#endif
