/* SPDX-License-Identifier: MIT
 *
 * A model of all queues: an array that says where each task should be, when it is due, and which task
 * comes next.
 *
 * A room stands for a queue, a ref for a task (by the number of its id), and a struct line for the line of a
 * route.
 */
#ifndef TW_TESTS_REDIS_MODEL_H
#define TW_TESTS_REDIS_MODEL_H

#include "fixture.h"
#include "tests/support/random.h"

#include <src/redis/queues/check.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/sums.h>
#include <stdlib.h>
#include <task/keepdue.h>

enum { ROOMS = 4, REFS = 3 + 20 + 90 + 600, ROOM_MAX = 600 };

enum place {
    ABSENT,
    NOWHERE, /* taken, and not filed again yet */
    WHEEL,
    BEHIND,
    LEASE,
    LATE,
    PAST,
    HELD,
    STOPPED,
    READY,
    DEAD
};

struct ref {
    struct room *room;
    struct tw__redis_task *task;
    uint64_t due, every, times;
    uint64_t order;    /* the number of its filing, which a lease keeps */
    uint64_t turn;     /* the number of its last filing, of leases too */
    uint64_t steady;   /* of a task in the wheel of leases: the end of its lease by the steady clock */
    uint64_t filed_ms; /* of a past task: when it was filed; of a ready task: when it became ready */
    int64_t position;  /* in a line */
    unsigned tries, plan;
    enum place place;
    bool moved; /* its turn among tasks with the same due time is not promised */
    bool has_attempt;
    struct tw__redis_attempt attempt;
};

/* The tasks that wait for one target. */
struct line {
    uint64_t retry_ms;    /* TW_NEVER: no retry */
    uint64_t next_steady; /* the next try by the steady clock */
    int64_t ready;        /* the number of the time that its route was made ready; 0: it is not ready */
};

struct room {
    struct tw__redis_queue *queue;
    struct ref *ref;
    unsigned size;
    struct line line[PLANS];
    bool attached, paused;
};

struct model {
    struct rng rng;
    struct room room[ROOMS];
    struct ref ref[REFS];
    uint64_t now, monotonic, order, turns;
    int64_t set;   /* by how much the wall clock was set, as the queues know */
    bool set_amid; /* the clock was set while a wheel had due tasks, and has some since then */
    int64_t front, back, made_ready; /* positions given so far, and routes made ready */
    uint64_t removed, reapable;      /* queues that the reaper has, and their tasks */
    struct ref *probe;               /* the task that was taken last, if it was a probe */
    unsigned nowhere;
    uint64_t taken, passed;
    /* How often it happened; `kept` by KEEPDUE, in this way. */
    uint64_t stopped, leases, returns, deaths, copies, steps, replaced, promoted, merged, late;
    uint64_t kept[TW__TASK_KEEPDUE_SAME_TIMES + 3]; /* the last two: it files for now, for the next period */
    uint64_t died;                                  /* the latest time up to which deaths were looked at */
};
extern struct model model;

/* model.c: where tasks are */
uint64_t below(uint64_t limit);
bool is_filed(const struct ref *ref);
bool is_leased(const struct ref *ref);
bool waits(const struct ref *ref); /* for a time: it is not ready, not leased and not dead */
struct ref *ref_of(const struct tw__redis_task *task, struct room **room);
uint64_t hash_of_ref(const struct room *room, const struct ref *ref);
void open_room(struct room *room);
void open_model(void);
unsigned held_of(const struct room *room, unsigned plan);
void model_leave(struct room *room, struct ref *ref);
void model_file(struct ref *ref, uint64_t due);
void model_line_up(struct ref *ref, enum place place, bool first);
struct ref *first_of(enum place place, bool due);
struct ref *first_in(const struct room *room, enum place place);
bool is_stuck(const struct tw__link *line);
bool is_next(const struct tw__link *line, const struct ref *ref);
uint64_t due_of(const struct ref *ref);
uint64_t reach(const struct ref *ref);
void set_clock(int64_t by);
void see_what_was_filed_again(void);
void see_what_was_moved_to_the_front(void);
void see_what_was_passed_over(void);

/* model_judge.c: whether tw__redis_place_take() took the right task */
struct ref *take(bool in_line, uint32_t budget, struct room **room);

/* model_check.c: whether the queues are as the model says */
void check_line(const struct tw__link *line, enum place place);
void check_sums(void);
void check_wheels(void);
void check_invariants(void);
void check_all(void);

/* model_attempts.c: leases, attempts, deaths and pauses, on the queues and in the model */
struct tw__redis_attempt some_attempt(uint64_t due, enum tw__task_stage stage, uint64_t every);
void offer(struct ref *ref);
void stop(struct ref *ref);
/* Puts the task of a ref. `behind`: it stands behind the attempt of `before`. */
void put_task(struct room *room, struct ref *ref, const struct ref *before, uint64_t due, bool behind);
void take_as_a_worker(struct room *room);
void give_some_back(struct room *room);
/* Puts another task with KEEPDUE. Returns whether it was filed anew. */
bool keep_due(struct room *room, struct ref *ref);
void promote_some(struct room *room);
bool live(struct room *room, struct ref *ref);
void lapse(struct room *room, struct ref *ref);
void pause_or_go_on(struct room *room);

/* model_look.c: whether looking finds the tasks of the model */
uint64_t some_time(void);
uint64_t some_due(void); /* the same, but no later than a task may be due */
uint64_t next_look(const struct ref *ref);
void file_again(struct ref *ref);
void look(struct room *room);

#endif
