/* SPDX-License-Identifier: MIT
 *
 * A delivery, and the calls of the server that it makes.
 */
#ifndef TW_REDIS_CALL_H
#define TW_REDIS_CALL_H

#include "batch.h"

enum { TW__ERROR_MAX = 200, TW__CALL_SMALL = 32 };

/* One task on its way to its target. */
struct tw__delivery {
    struct tw__batch *batch;
    struct tw__task *task;
    struct tw__route *route;
    struct tw__schedule *schedule;
    struct tw__plan plan; /* the route's, unpacked */
    uint64_t now_ms;
    enum tw__defer why;        /* the last answer of the server: TW__DEFER_NONE, or why it refused */
    char error[TW__ERROR_MAX]; /* the text of that refusal */
};
void tw__delivery_init(struct tw__delivery *delivery, struct tw__batch *batch, struct tw__task *task,
                       uint64_t now_ms);

/* What other modules did while the server did something for a delivery. */
enum tw__meanwhile {
    TW__UNSEEN, /* none of them was about to look at a schedule */
    TW__SEEN,   /* one was. The task is the same; others may have been changed or removed */
    TW__GONE    /* the task was changed or removed, or its schedule detached: the delivery is over */
};

/* Finds out whether the task's schedule is still the value of its key; if not, TW__GONE. */
enum tw__meanwhile tw__call_key(struct tw__delivery *delivery);

/* ---- a call ---------------------------------------------------------------------------------------------- */

/* The arguments of a call, one by one. */
struct tw__call {
    RedisModuleString **at, *small[TW__CALL_SMALL];
    bool *is_own, small_own[TW__CALL_SMALL]; /* is_own: the argument is freed after the call */
    size_t count, room;
};

/* Words that calls have in common, and the names of the fields that a delivery adds. */
enum tw__word {
    TW__WORD_MAXLEN,
    TW__WORD_ABOUT, /* MAXLEN ~ */
    TW__WORD_NEW_ID,
    TW__WORD_ID,
    TW__WORD_DUE,
    TW__WORD_ATTEMPT,
    TW__WORD_FIRST, /* attempt */
    TW__WORD_TARGET,
    TW__WORD_ERROR,
    TW__WORD_BYTES,
    TW__WORD_VALUE,
    TW__WORDS
};
extern const char *const tw__word_text[TW__WORDS];

/* Makes the words: to be called when the module is loaded. */
void tw__call_start(void);

/* A call without arguments, with room for `most`. */
void tw__call_init(struct tw__call *call, size_t most);

/* Adds an argument. One that is kept belongs to somebody else, and outlives the call. */
void tw__call_add_kept(struct tw__call *call, RedisModuleString *string);
void tw__call_add_own(struct tw__call *call, RedisModuleString *string);
void tw__call_add_word(struct tw__call *call, enum tw__word word);

/* Adds the fields tw.id, tw.due and tw.attempt; the strings of the payload. */
void tw__call_add_about(struct tw__call *call, const struct tw__task *task);
void tw__call_add_payload(struct tw__call *call, const struct tw__task *task);

/* Calls the server and frees the arguments. `why` and `error` of the delivery have the answer afterwards,
 * whatever became of the task. */
enum tw__meanwhile tw__call_send(struct tw__call *call, const char *command, struct tw__delivery *delivery);

#endif
