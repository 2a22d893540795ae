/* SPDX-License-Identifier: MIT
 *
 * tickwheel/store.h - tasks in an SQLite file: they survive the end of the process, and commit together with
 * the rows of the program.
 *
 * A complete program. Link it with libtickwheel_store: `cc first.c $(pkg-config --cflags --libs
 * tickwheel_store)`.
 *
 *     #include <stdio.h>
 *     #include <tickwheel/store.h>
 *
 *     static void show(void *arg, const struct tw_store_task *task)
 *     {
 *         (void)arg;
 *         printf("%.*s is due at %llu\n", (int)task->id.size, (const char *)task->id.data,
 *                (unsigned long long)task->due_ms);
 *     }
 *
 *     int main(void)
 *     {
 *         struct tw_store *store;
 *         char message[TW_STORE_MESSAGE_SIZE];
 *         if (tw_store_open(&store, "shop.db", NULL, message, sizeof message) != 0) {
 *             fprintf(stderr, "%s\n", message);
 *             return 1;
 *         }
 *         struct tw_store_delayed order = {.queue = "orders", .id = tw_text("order:42"),
 *                                          .due_ms = tw_store_now() + 30 * 60 * 1000};
 *         tw_store_put(store, &order, 0, NULL);                    // on the disk when the call returns
 *         tw_store_scan(store, "orders", NULL, show, NULL);
 *         tw_store_cancel(store, tw_store_named("orders", "order:42"), NULL); // paid
 *         tw_store_close(store);
 *     }
 *
 * Conventions, stated once
 *   Time      Unix time in milliseconds (UTC) in a uint64_t, which tw_store_now() reads, from 0 to
 *             TW_STORE_TIME_MAX. Periods and delays are milliseconds too. Of the times at which a task is due
 *             only that of tw_store_move_in() is a delay. All others are points: a put has its point in its
 *             struct, and so has no `_in` and no `_at`. Example: `.due_ms = tw_store_now() + delay_ms`.
 *   Task      A task is a row of the file. Its queue and its id name it. A queue has a name of 1 to
 *             TW_STORE_QUEUE_MAX bytes of UTF-8 without NUL, and exists as soon as a task names it. An id has
 *             1 to TW_STORE_ID_MAX bytes of any kind, and is unique in its queue. If a
 *             program has written a queue of other bytes to the tables, it is shown, run, and emptied as each
 *             other one.
 *   Revision  A task gets a new revision each time it is filed: by a put, a move, a replay, a promotion, for a
 *             retry, for the time that a back names, and for its next period. The file never uses a number
 *             twice. A put with TW_CONDITION_KEEPDUE that leaves the times alone gives none.
 *   Order     Tasks have the order of their places: the later of `next_ms` and the time of filing. Those with
 *             the same place have the order of their revisions, so of filing.
 *   Durable   A call that changes tasks returns when the change is on the disk (SQLite's synchronous=FULL), or
 *             fails and has changed nothing. With TW_STORE_OPEN_LAZY it returns earlier: docs/store.md says
 *             what a crash of the machine can take then.
 *   Commits   Calls that come from several threads at the same time share a commit. One of them that fails
 *             leaves the others as they are.
 *   File      The store has connections of its own, in WAL mode. Any number of processes may have the same
 *             file open, with this library or with SQLite alone, and keep their own tables there. The names of
 *             our tables begin with tw_. docs/store.md describes them. Each call looks whether the path still
 *             names the file that tw_store_open() has opened, so the process must keep its access to the path.
 *   Threads   Every call may come from any thread, except where a label says otherwise, and none from a signal
 *             handler.
 *   NULL      Never a valid argument, except where a label says so. `arg` may be NULL, and so may `options`,
 *             for all defaults.
 *   Structs   As in sched.h. struct tw_bytes and struct tw_store_name stay as they are.
 *   Requires  A duty of the caller that no return code reports. A library compiled with TICKWHEEL_DEBUG 1
 *             asserts it.
 *   Results   As in wheel.h. An error is of this header, of sched.h or of wheel.h. tw_store_strerror() returns
 *             its text, and tw_store_message() says more. Besides the codes that its own label lists, each call
 *             may return TW_ENOMEM, and TW_EINVAL if an argument or a member of a struct is out of its range.
 *             The pointer for the outcome of a change is the last one (`made`, `found`, `changed`, `count`),
 *             and may be NULL. The pointer for the answer of a look may not. A call that fails writes neither.
 *   Looks     A look sees the file as it was at one moment, in a transaction that reads. A function that visits
 *             for a look makes no call with the same store, and keeps none of the pointers that it receives.
 *   Messages  As in wheel.h. TW_STORE_MESSAGE_SIZE bytes hold every message.
 *   Busy      A call returns TW_EBUSY if another connection has held the write lock for busy_ms. The message
 *             names that time. Example: the caller has begun a transaction that writes, on a connection of its
 *             own.
 *   Disk      A call returns TW_ENOSPACE if the disk is full or a quota is used up, TW_EIO if the disk fails,
 *             TW_EREADONLY if the file cannot be written, and TW_ECORRUPT if the file is damaged. After TW_EIO
 *             the change is not seen, but it may be in SQLite's log: if the process dies then, the next one may
 *             find it made.
 *   Replaced  A call returns TW_EREPLACED, and changes nothing, if the file was removed, or another file has
 *             taken its place, before the call began. So it does if that has happened to the log of SQLite or
 *             its index, whose names end in "-wal" and "-shm". Close the store and open it again. If the file
 *             lost its path and its log did not, first move the log and its index with the file, or remove them
 *             if it is gone: SQLite would take them for those of the next file, and damage it. If the file is
 *             replaced during a call, the change may be lost with the old file. Of a connection of the caller
 *             only the file itself is looked at.
 *   Fork      Every call requires that this process opened the store. A child of fork() must not use a store
 *             of its parent, and must not close it. While the child lives and calls no exec function, it
 *             keeps the lock of a parent that ran the tasks, also after the parent's end.
 *   SQLite    The program and this library use the same SQLite library. Two copies of SQLite in one process
 *             that open the same file break its locks (sqlite.org, "How To Corrupt An SQLite Database File",
 *             2.2.1).
 */
#ifndef TICKWHEEL_STORE_H
#define TICKWHEEL_STORE_H

#include <tickwheel/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A store: an open file. Its members are private. */
struct tw_store;
/* A connection of SQLite (sqlite3.h). */
struct sqlite3;

/* The errors of the store, besides those of sched.h and wheel.h: name, value and text. */
#define TW_STORE_ERROR_TABLE(X)                                                                                \
    X(TW_EBUSY, -200, "another connection holds the write lock of the file")                                   \
    X(TW_EREADONLY, -201, "the file cannot be written")                                                        \
    X(TW_EFORMAT, -202, "the file is no store, or a store of a newer version")                                 \
    X(TW_ECORRUPT, -203, "the file is damaged")                                                                \
    X(TW_ENOSPACE, -204, "the disk is full")                                                                   \
    X(TW_EIO, -205, "the file cannot be opened, read or written")                                              \
    X(TW_EDEAD, -206, "the task is dead: expected a replay, or a put in its place")                            \
    X(TW_EINTERRUPTED, -207, "SQLite was interrupted")                                                         \
    X(TW_EROLLBACK, -208, "a change could not be taken back: roll the transaction back")                       \
    X(TW_EREPLACED, -209, "the file was removed or replaced while it was open: open it again")                 \
    X(TW_EFAILED, -210, "an attempt of the task has failed")                                                   \
    X(TW_EDAMAGED, -211, "the row of the task is damaged, so nobody calls it")

/* The codes of TW_STORE_ERROR_TABLE. */
enum tw_store_error {
#define TW__ENUM(name, value, text) name = value,
    TW_STORE_ERROR_TABLE(TW__ENUM)
#undef TW__ENUM
};

/* The text of an error of this library, of the scheduler or of the wheel.
 * Returns: as tw_strerror(). */
const char *tw_store_strerror(int error);

/* Limits. */
enum {
    TW_STORE_QUEUE_MAX = 255,   /* bytes of a queue's name */
    TW_STORE_ID_MAX = 960,      /* bytes of an id that a put may name */
    TW_STORE_ANY_ID_MAX = 1024, /* bytes of any id, as each other call may name it */
    TW_STORE_MESSAGE_SIZE = 512 /* bytes that hold every message of this library */
};

/* The last due time: the end of the year 9999. */
#define TW_STORE_TIME_MAX UINT64_C(253402300799999)
/* max_late_ms of a task that is dropped if it is late at all. */
#define TW_STORE_ON_TIME (UINT64_MAX - 1)
/* jitter of a task whose waits are exact. */
#define TW_STORE_NO_JITTER UINT32_MAX

/* ---- opening ------------------------------------------------------------------------------------------- */

/* Flags of a store, added. */
enum {
    /* A call that changes tasks returns before they are on the disk. The tasks survive the end of the process,
     * but not a crash of the machine until the next tw_store_flush() or checkpoint. */
    TW_STORE_OPEN_LAZY = 1,
    /* The file must exist and have the tables of a store: none are made in a file of somebody else. */
    TW_STORE_OPEN_EXISTING = 2
};

/* The options of a store. If all members are zero, the options are the defaults. */
struct tw_store_options {
    unsigned flags;       /* TW_STORE_OPEN_LAZY, TW_STORE_OPEN_EXISTING, added */
    uint64_t busy_ms;     /* how long a call waits for another connection's lock, at most 3,600,000; 0: 5,000 */
    uint64_t max_payload; /* bytes of a payload, at most 999,000,000; 0: 1,000,000 */
    uint64_t reserved[4]; /* 0: see "Structs" above */
};

/* Checks whether options are valid, without a file. If they are not, `message` names the wrong value and the
 * values that are allowed, as that of tw_store_open() does.
 * Returns: 0 or TW_EINVAL. */
int tw_store_options_check(const struct tw_store_options *options, char *message, size_t size);

/* Opens the file at `path`, and makes it if it does not exist. A file without the tables of a store gets them,
 * in one transaction, and keeps its other tables. A copy that VACUUM INTO has made gets WAL mode. `options`
 * (NULL: all defaults) is copied. If the call fails, `message` explains why.
 * Returns: 0, and the store in *store, or an error.
 *   - TW_EINVAL: tw_store_options_check() returns it; or the path names no file (":memory:", an empty path,
 *     "file:..."), or is too long for SQLite, which takes 504 bytes from the root on.
 *   - TW_EFORMAT: the file is no database of SQLite, or is not in WAL mode, or its text is not UTF-8, or
 *     its tables have another format, or it has none and the flag says that it must. The file is unchanged.
 *   - TW_EREADONLY: the process may not write the file, or may make no file in its folder.
 *   - TW_ENOSPACE: the disk has no room, or no inode, for a new file.
 *   - TW_ESYSTEM: the system has no descriptor left.
 *   - TW_EREPLACED: also if the index of SQLite's log was removed while this process has the file open; or if
 *     no file or an empty one is at the path, and the log of a file that was moved away is. No file is made,
 *     or an empty one behind a symbolic link that leads nowhere.
 *   - TW_EIO: the file cannot be opened, for another reason: its folder does not exist. */
int tw_store_open(struct tw_store **store, const char *path, const struct tw_store_options *options,
                  char *message, size_t size);

/* Closes the store. `store` may be NULL.
 * Requires: no other call is under way, and none comes later. */
void tw_store_close(struct tw_store *store);

/* The time now: Unix time in milliseconds. */
uint64_t tw_store_now(void);

/* Copies the message of the call that failed last, on any thread. It is empty if none has failed. */
void tw_store_message(const struct tw_store *store, char *message, size_t size);

/* Waits until every change so far is on the disk. Only a store with TW_STORE_OPEN_LAZY needs it. Any other
 * store looks whether the file is still at its path.
 * Returns: 0 or an error. */
int tw_store_flush(struct tw_store *store);

/* ---- changing tasks ------------------------------------------------------------------------------------ */

/* The name of a task. */
struct tw_store_name {
    const char *queue; /* terminated */
    struct tw_bytes id;
};

/* Returns the name of a task whose id is a C string. Other ids: `(struct tw_store_name){queue, {id, size}}`. */
static inline struct tw_store_name tw_store_named(const char *queue, const char *id)
{
    struct tw_store_name name = {queue, tw_text(id)};
    return name;
}

/* A task to put. `queue`, `id` and `due_ms` are needed; the other members may be zero.
 * Example:
 *     struct tw_store_delayed order = {.queue = "orders", .id = tw_text("order:42"),
 *                                      .due_ms = tw_store_now() + 1800000, .tries = 3, .backoff_ms = 10000};
 */
struct tw_store_delayed {
    const char *queue;  /* terminated */
    struct tw_bytes id; /* 1 to TW_STORE_ID_MAX bytes */
    uint64_t due_ms;    /* when it is due, at most TW_STORE_TIME_MAX; a time that has passed means at once */
    struct tw_bytes payload; /* for the handler, 0 to max_payload bytes */
    uint64_t every_ms;     /* from due time to due time, 0 to 3,155,760,000,000 (100 years); 0: it runs once */
    uint64_t times;        /* calls in all, with every_ms only; 0 or TW_FOREVER: no end */
    enum tw_missed missed; /* periods that passed without a call (task.h), with every_ms only; 0: coalesce */
    /* Failures until the task is dead, 1 to 1,000,000. Here and in the next four members 0 means: as the file
     * has it (tw_meta) when the task fails. A new file has 20 tries, a wait of 1,000 ms, a factor of 200 %, a
     * longest wait of an hour, and a jitter of 10. */
    uint32_t tries;
    uint32_t factor_percent; /* each further wait is so many percent of the one before, 100 to 10,000 */
    uint64_t backoff_ms;     /* the wait after the first failure, at most 100 years */
    uint64_t backoff_max_ms; /* the longest wait, at most 100 years */
    uint32_t jitter; /* percent by which a wait is shorter or longer, at most 100, or TW_STORE_NO_JITTER */
    /* A call whose first attempt is later than that is not made: a task that runs once is removed, and a task
     * that repeats goes on with the first period that is not too late. At most 100 years, or TW_STORE_ON_TIME;
     * 0 or TW_FOREVER: no limit. */
    uint64_t max_late_ms;
    uint64_t reserved[4]; /* 0: see "Structs" above */
};

/* Conditions of a put or a move: at most one of the first four. A put may have TW_CONDITION_KEEPDUE, alone or
 * with NX or XX. */
enum tw_condition {
    TW_CONDITION_NX = 1, /* put: only if the queue has no task with this id */
    TW_CONDITION_XX = 2, /* put: only if the queue has a task with this id */
    TW_CONDITION_GT = 4, /* an existing task only gets a later due time */
    TW_CONDITION_LT = 8, /* an existing task only gets an earlier due time */
    /* put: an existing task keeps its times, and gets the new payload and the new options. For a program that
     * puts its tasks at each start; tw_store_put() has the rules. */
    TW_CONDITION_KEEPDUE = 16
};

/* Puts a task. The state that the task has decides about a put, a move and a cancel:
 *   - No such task: a put files it. A move returns TW_EGONE, and a cancel finds TW_CANCEL_GONE.
 *   - Waiting: a put replaces it, a move files it for its new time. A cancel removes it (TW_CANCEL_CANCELLED).
 *   - Leased: a put or a move replaces the task at once, and the new one stands behind the attempt that is
 *     under way. Whatever its handler answers then only ends that attempt: no retry follows, and nothing dies.
 *     From that moment on the new task waits. If its time has passed meanwhile, its `next_ms` is that moment. A
 *     cancel removes the task (TW_CANCEL_AT_WORK), and with it one that stands behind; the handler goes on, and
 *     its answer changes nothing. A task is leased from its claim on, and its handler begins a moment later: if
 *     it has not begun when the put, the move or the cancel returns, it does not begin, unless it begins at
 *     this moment. If the process dies, the task is leased until the next run begins.
 *   - Dead: a put replaces it. A move returns TW_EDEAD. A cancel removes it (TW_CANCEL_CANCELLED).
 *
 * A task that was put, moved or replayed begins with its first attempt. The conditions see tasks in every
 * state, dead tasks too, and the task behind an attempt. GT and LT compare with `due_ms`, which is the same in
 * each attempt; a put with GT or LT files a task that does not exist.
 *
 * A put with KEEPDUE looks at the task that is there, and not at the clock:
 *   - Waiting, ready, or standing behind an attempt: its due_ms, next_ms, attempt, error, revision and place in
 *     the order stay. Options that the put leaves out have their defaults, not their old values.
 *   - Leased, and both the stored and the new task repeat: the attempt goes on with the payload that its
 *     handler has. Its answer counts for the new options. The next period is the present due_ms plus the new
 *     every_ms, times one more than the missed periods of the call, which are counted anew.
 *   - Leased otherwise: the new task stands behind the attempt, and is due now.
 *   - Dead, or no such task: a put as each other one.
 *
 * *made receives whether the task was put: false, if the condition kept everything as it was.
 * Returns: 0 or an error. TW_EINVAL also if the conditions do not go together.
 * Cost: a commit, shared with other threads; O(log tasks) in the file. */
int tw_store_put(struct tw_store *store, const struct tw_store_delayed *put, unsigned conditions, bool *made);

/* Gives a task a new due time: the point `due_ms`, or `delay_ms` from now. tw_store_put() says how the state of
 * the task decides. *made receives whether the task was moved: false, if the condition kept it where it was.
 * Requires: `conditions` is 0, TW_CONDITION_GT or TW_CONDITION_LT.
 * Returns: 0, TW_EGONE, TW_EDEAD or another error.
 * Cost: as tw_store_put(). */
int tw_store_move_at(struct tw_store *store, struct tw_store_name name, uint64_t due_ms, unsigned conditions,
                     bool *made);
int tw_store_move_in(struct tw_store *store, struct tw_store_name name, uint64_t delay_ms, unsigned conditions,
                     bool *made);

/* Cancels a task. *found receives one of enum tw_cancel: tw_store_put() says which.
 * Returns: 0, also if there is no such task, or an error.
 * Cost: as tw_store_put(). */
int tw_store_cancel(struct tw_store *store, struct tw_store_name name, enum tw_cancel *found);

/* What a change does. */
enum tw_store_verb {
    TW_STORE_VERB_PUT,   /* as tw_store_put() */
    TW_STORE_VERB_MOVE,  /* as tw_store_move_at() */
    TW_STORE_VERB_CANCEL /* as tw_store_cancel() */
};

/* One change of many. */
struct tw_store_change {
    enum tw_store_verb verb;
    /* a move needs queue, id and due_ms; a cancel needs queue and id */
    struct tw_store_delayed task;
    unsigned conditions;  /* as in the calls above; TW_STORE_VERB_CANCEL: 0 */
    int result;           /* receives 0, TW_EGONE or TW_EDEAD, as the single call returns */
    bool made;            /* receives whether a put or a move was made */
    enum tw_cancel found; /* receives what a cancel has found */
    uint64_t reserved[2]; /* 0: see "Structs" above */
};

/* Makes many changes, one after the other, in one commit. TW_EGONE and TW_EDEAD of one change do not hinder
 * the others.
 * Returns: 0, or an error, and then none of the changes is made.
 * Cost: one commit. A thousand changes together cost far less than a thousand calls. */
int tw_store_apply(struct tw_store *store, struct tw_store_change *changes, size_t n);

/* As tw_store_apply(), on a connection of the caller, inside the caller's transaction. If there is none, the
 * changes are a transaction of their own. They are durable when and as it is committed, and a rollback takes
 * them back. Other connections see them after the commit. The calls use the connection only while they run, and
 * leave nothing on it. `schema` is the name under which the file is attached; NULL: "main". The number of
 * changes that sqlite3_changes() counts is ours after the call; the last rowid stays the caller's.
 * Requires: the tables of the store exist in that file: tw_store_open() has made them.
 * Threads: as SQLite's rules for the connection.
 * Returns: as tw_store_apply(), or one of the errors below. After an error the caller's transaction has the
 * rows that it had before the call, and may hold the write lock. `message` explains the error.
 *   - TW_EBUSY: the connection's own busy timeout is over. If the transaction has read already and another
 *     connection has written since, it comes at once, and only a new transaction helps: begin with BEGIN
 *     IMMEDIATE.
 *   - TW_EINTERRUPTED: sqlite3_interrupt() or a progress handler. SQLite may have rolled back the whole
 *     transaction: sqlite3_get_autocommit() tells.
 *   - TW_EROLLBACK: the changes could not be taken back, because SQLite is interrupted still, has no memory
 *     or cannot read the file. The caller must roll back the transaction.
 *   - TW_EREPLACED: the file of the connection was removed or replaced. Close the connection and open it again.
 * Example: the order and its timeout are there both, or none of them.
 *     sqlite3_exec(db, "BEGIN; INSERT INTO orders VALUES (42, 'new')", NULL, NULL, NULL);
 *     tw_store_apply_on(db, NULL, &change, 1, NULL, 0);
 *     sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
 */
int tw_store_apply_on(struct sqlite3 *db, const char *schema, struct tw_store_change *changes, size_t n,
                      char *message, size_t size);

/* ---- looking ------------------------------------------------------------------------------------------- */

/* A task of the file, as a tw_store_visit_fn gets it. */
struct tw_store_task {
    const char *queue;
    struct tw_bytes id;
    enum tw_state state;       /* a task that waits is TW_STATE_READY as soon as next_ms has passed */
    uint64_t due_ms, revision; /* due_ms: the time of this period, the same in each attempt */
    /* When it can be taken next: due_ms, or later for a retry, or earlier if it was promoted. Of a task that a
     * handler has, it is as before that, and of a task that is `replaced` it is the new task's. Of a task that
     * a program has taken in SQL it is the end of its lease, and of a dead task 0. */
    uint64_t next_ms;
    uint64_t every_ms, times; /* as in the put; `times` is how many calls are left */
    enum tw_missed missed;
    uint64_t missed_periods; /* for which the call of this period stands besides its own; 0 before it */
    uint32_t tries, attempt; /* attempt: the number of the attempt under way, or of the last one; 0: none yet */
    bool replaced;           /* this task stands behind the attempt that is under way, of an older one */
    uint64_t place_ms;       /* its place in the order: next_ms, or when it was filed, if that was later */
    uint32_t lapses;         /* how many of them have lapsed: their run or lease had ended. They cost no try */
    /* How it is tried again, as in the put. A member that the put has left out is as the file has it now. */
    uint64_t backoff_ms, backoff_max_ms;
    uint32_t factor_percent, jitter;
    uint64_t dead_ms;     /* when it died; 0: it has not */
    uint64_t max_late_ms; /* as in the put: TW_STORE_ON_TIME, and TW_FOREVER: no limit */
    struct tw_bytes payload;
    const char *error; /* of the last attempt that failed; NULL: none */
};

/* Visits a task, by the rules of "Looks" above. */
typedef void tw_store_visit_fn(void *arg, const struct tw_store_task *task);

/* Shows a task to `visit`, once.
 * Returns: 0, TW_EGONE, or an error. */
int tw_store_get(const struct tw_store *store, struct tw_store_name name, tw_store_visit_fn *visit, void *arg);

/* Which tasks a scan shows. If all members are zero, it shows all but the dead tasks. */
struct tw_store_range {
    unsigned states; /* TW_STATE_WAITING, _READY and _LEASED, added, or TW_STATE_DEAD; 0: the first three */
    uint64_t from_ms, to_ms; /* place_ms from and to, both included; to_ms 0: no end */
    uint64_t after;          /* of the tasks with place_ms from_ms only revisions after this one */
    uint64_t count;          /* at most so many tasks; 0: all */
    uint64_t reserved[2];    /* 0: see "Structs" above */
};

/* Shows the tasks of a queue to `visit`, in the order of place_ms and of their revisions. `range` may be NULL,
 * for all but the dead ones. To go on after a page, a caller sets from_ms to the place_ms and `after` to the
 * revision of the last task that it saw. Dead tasks are asked for alone, and dead_ms, the time of their death,
 * stands in for place_ms in all of this. `queue` NULL: the tasks of all queues, one queue after the other, and
 * `after` is 0.
 * Returns: 0 or an error.
 * Cost: O(log tasks + tasks in the range); of all queues, O(tasks) until `count` is reached. */
int tw_store_scan(const struct tw_store *store, const char *queue, const struct tw_store_range *range,
                  tw_store_visit_fn *visit, void *arg);

/* Counts the tasks of a queue: the dead ones, or all others. `queue` NULL: of all queues.
 * Returns: 0, and the number in *count, or an error.
 * Cost: O(tasks counted), a few million a second. */
int tw_store_count(const struct tw_store *store, const char *queue, bool dead, uint64_t *count);

/* Looks up next_ms of the first task of a queue that waits (TW_STATE_WAITING). `queue` NULL: the least of all
 * queues. tw_store_scan() tells whether there are tasks that do not wait.
 * Returns: 0, and the time in *next_ms, TW_NEVER if there is none, or an error.
 * Cost: O(log tasks), for each queue. */
int tw_store_next(const struct tw_store *store, const char *queue, uint64_t *next_ms);

/* Counts the calls to come of the tasks of a queue that wait, in `steps` steps of `step_ms` milliseconds from
 * now on. counts[i] receives how many come in (now + i * step_ms, now + (i + 1) * step_ms]: the first call of a
 * task at next_ms.
 *   - Tasks that are ready or leased do not count, nor do further periods of theirs.
 *   - Each call of a repeating task within that time counts, as if no handler took time. Periods that the first
 *     call will have missed count as one call, or as one call each with TW_MISSED_BURST, or as none with
 *     TW_MISSED_SKIP.
 *   - A call that will be too late (max_late_ms) counts too.
 * Requires: `counts` has room for `steps` numbers.
 * Returns: 0 or an error, and then *counts is unchanged.
 *   - TW_EINVAL: step_ms is 0 or more than 3155760000000, or `steps` is not 1 to TW_FORECAST_MAX.
 * Cost: O(tasks until the end + leased tasks), and O(steps) for each repeating task. Twenty times as much for
 * the tasks while a ready or leased task has a place_ms that lies ahead, because the clock was set back. */
int tw_store_forecast(const struct tw_store *store, const char *queue, uint64_t step_ms, uint32_t steps,
                      uint64_t *counts);

/* Visits a queue, by the rules of "Looks" above. */
typedef void tw_store_visit_queue_fn(void *arg, const char *queue);

/* Shows the name of each queue that has a task, or is paused, to `visit`, in the order of their bytes.
 * Returns: 0 or an error.
 * Cost: O(queues * log tasks). */
int tw_store_queues(const struct tw_store *store, tw_store_visit_queue_fn *visit, void *arg);

/* The load of a queue, as a tw_store_visit_load_fn gets it. */
struct tw_store_load {
    const char *queue;
    uint64_t waiting, ready, leased, dead; /* tasks in each state (task.h) */
    uint64_t next_ms;                      /* of the first task that waits; TW_NEVER: none does */
    bool paused;
    uint64_t tasks; /* waiting, ready and leased together */
};

/* Visits the load of a queue, by the rules of "Looks" above. */
typedef void tw_store_visit_load_fn(void *arg, const struct tw_store_load *load);

/* Shows the load of each queue that has a task, or is paused, to `visit`, in the order of their names. If
 * `queue` is not NULL, it shows that queue alone, also one that the file does not have.
 * Returns: 0 or an error.
 * Cost: O(tasks), a few million a second, and O(log tasks) for each queue. */
int tw_store_loads(const struct tw_store *store, const char *queue, tw_store_visit_load_fn *visit, void *arg);

/* Makes looks at the file: calls of this section.
 * Requires: it makes no other call with the same store, and leaves by its return. */
typedef void tw_store_looks_fn(void *arg);

/* Calls `looks`. All its looks see the file as it was at one moment, in one transaction: so looking at a
 * hundred thousand queues, one after the other, costs a fraction. Meanwhile looks of other threads wait, and
 * SQLite cannot shorten its log: do not wait for anybody.
 * Requires: it is not called by a tw_store_looks_fn or a function that visits, with the same store.
 * Returns: 0, or an error, and then `looks` was not called. An error of a look is the result of that one. If it
 * has ended the transaction, as a lack of memory does, each look after it returns the same error. */
int tw_store_snapshot(const struct tw_store *store, tw_store_looks_fn *looks, void *arg);

/* ---- running tasks ------------------------------------------------------------------------------------- */

/* A handler's answer. */
enum tw_answer {
    TW_ANSWER_DONE,   /* the call is done: the task is removed, or waits for its next period */
    TW_ANSWER_FAILED, /* the attempt has failed: the next one comes after the backoff; after the last: dead */
    /* The task is dead: it stays in the file, until it is replayed, put anew, cancelled or purged. If it
     * repeats, this period becomes a dead task of its own, whose id is "<id>@<due_ms>" or, if that is in use,
     * "<id>@<due_ms>-1", and so on. The task waits for its next period. */
    TW_ANSWER_DEAD,
    TW_ANSWER_LATER, /* tw_job_answer() will bring the answer */
    /* The job is given back, as if its handler had not been called: the task waits with its revision and its
     * due time, and the attempt does not count. For a program that is about to stop. With a time of
     * tw_job_retry_at() it waits until then, and goes behind the others of that time: for "not yet". */
    TW_ANSWER_BACK
};

/* A job: one attempt of a task, as its handler gets it. It is valid until it is answered. */
struct tw_job {
    const char *queue;
    struct tw_bytes id, payload;
    uint64_t due_ms;         /* when this call was due; the same for each attempt */
    uint64_t late_ms;        /* how long after late_from_ms the handler was called */
    uint64_t revision;       /* of the task: a retry has another one, and so has the next period */
    uint64_t left;           /* calls after this one, as the claim has found them; TW_FOREVER: no end */
    uint64_t missed_periods; /* TW_MISSED_COALESCE: periods that this call stands for besides its own, the same
                                in each attempt */
    uint32_t attempt;        /* the number of this attempt, from 1 */
    uint32_t tries;          /* failures until the task is dead, as it was when the attempt began */
    uint32_t lapses;         /* attempts before this one that have lapsed: they cost no try */
    const char *error;       /* of the attempt before; NULL: none */
    /* When the call could be made first: the task's next_ms or, if it does not repeat and was filed later than
     * that, when it was filed (place_ms). Example: a task that is put for 1970 is late from its put on. */
    uint64_t late_from_ms;
    /* Of this attempt alone, while queue, id and due_ms name the call. "%016" PRIx64 writes it as SQL does. */
    uint64_t token;
};

/* Handles a job, on a worker. It may make each call with the store whose comment does not forbid it.
 *
 * The attempt is on the disk before the handler is called (with TW_STORE_OPEN_LAZY, in the log of the file). So
 * if the process dies in the handler, the next run calls it again, with the next attempt: each call comes at
 * least once. An attempt whose process has died lapses when the next run begins. That costs no try, and the
 * task waits as after a failure; the 17th lapse kills the task. Jobs of the same task never overlap within one
 * run. The answer is that of the revision that ran, see tw_store_put(). If it cannot be written, for example
 * because the disk is full, it is tried again until it can.
 * Returns: its answer. After each of them but TW_ANSWER_LATER the job is gone. */
typedef enum tw_answer tw_store_handler_fn(void *arg, struct tw_job *job);

/* Notes the error of an attempt, for TW_ANSWER_FAILED and TW_ANSWER_DEAD. With TW_ANSWER_BACK nothing has
 * failed: the text is not kept, and the run tells of it (TW_EINVAL, see tw_store_error_fn). A longer text than
 * 4,096 bytes is cut, between two characters of UTF-8. A byte that is not UTF-8 becomes '?', because programs
 * in many languages refuse to read a row with such a text. Without memory the error is empty. */
void tw_job_fail(struct tw_job *job, const char *error);

/* Sets when the next attempt comes: for TW_ANSWER_FAILED in place of the backoff, and for TW_ANSWER_BACK.
 * Returns: 0, or TW_EINVAL if next_ms is more than TW_STORE_TIME_MAX, and then nothing is set. */
int tw_job_retry_at(struct tw_job *job, uint64_t next_ms);

/* Answers a job whose handler returns TW_ANSWER_LATER, or has returned it.
 * Requires: it is called once for a job. `answer` is not TW_ANSWER_LATER. */
void tw_job_answer(struct tw_job *job, enum tw_answer answer);

/* Names the handler of a queue. `queue` NULL: of all queues that have no handler of their own. At most
 * `at_once` jobs of a queue are under way at the same time; 0: no limit of its own.
 * Requires: the store does not run.
 * Returns: 0 or an error. TW_EINVAL also if the queue has a handler already. */
int tw_store_handle(struct tw_store *store, const char *queue, uint32_t at_once, tw_store_handler_fn *handler,
                    void *arg);

/* Flag of a run: while another process runs the tasks of the file, wait and take over when it ends. */
enum { TW_STORE_RUN_STANDBY = 1 };

/* Receives the news of a run that no call returns:
 *   - TW_EFAILED: a call has failed for the first time, and there will be another attempt. The message names
 *     the queue, the id and the error. Further failures of the call are not told.
 *   - TW_EDEAD: a task has died; the message is of the same kind.
 *   - TW_EDAMAGED: a task whose turn has come has a row that is damaged: its id has 0 bytes or more than
 *     TW_STORE_ANY_ID_MAX, or its due_ms is no time. It is not called, and the others are. The message names
 *     the queue, the fault, and the statement of SQL that removes the row.
 *   - TW_EINVAL: a task was given back (TW_ANSWER_BACK), and its attempt had an error (tw_job_fail()). It is
 *     back, without the text. The message names the queue and the id.
 *   - TW_EREPLACED: the last news. The file, its log, or the file with the lock was removed or replaced, and
 *     the run has ended. No handler begins any more, no answer is written, and another process may run the
 *     tasks. The program calls tw_store_stop(), and opens the store again if it shall run the file that is
 *     there now.
 *   - Any other error: the store could not read or write while it ran, and tries again within a second. It is
 *     called again after each try that has failed.
 *   - 0: now it could, for the first time after such an error. If claims had failed, other than for a lock or
 *     for memory, each of them has succeeded now, or its task has left.
 *
 * It is called on the store's own thread, which claims no task meanwhile. A thousand tasks may die together,
 * so a program that prints the news limits its lines.
 * Requires: it makes no call with the store. */
typedef void tw_store_error_fn(void *arg, int error, const char *message);

/* The options of a run. If all members are zero, the options are the defaults. */
struct tw_store_run_options {
    unsigned flags;              /* 0 or TW_STORE_RUN_STANDBY */
    uint32_t workers;            /* threads that call handlers, at most 1,024; 0: as many as processors */
    uint32_t max_jobs;           /* jobs under way at most, 1 to 65,536; 0: 1,024 */
    uint64_t max_bytes;          /* of their payloads, ids and errors; one job is always possible; 0: 64 MiB */
    uint64_t max_loaded;         /* coming tasks in memory, roughly, 1,000 to 100,000,000; 0: 100,000 */
    tw_store_error_fn *on_error; /* NULL: none */
    void *arg;                   /* for on_error */
    uint64_t reserved[4];        /* 0: see "Structs" above */
};

/* Checks whether options of a run are valid, without a store. If they are not, `message` names the wrong value
 * and the values that are allowed, as tw_store_message() does after tw_store_start().
 * Returns: 0 or TW_EINVAL. */
int tw_store_run_options_check(const struct tw_store_run_options *options, char *message, size_t size);

/* Runs the tasks of the file: the handlers of their queues are called when they are due. Tasks that fell due
 * before come at once. Tasks are called in their order. So a task that is put when its time has passed comes
 * after the tasks that are ready by then. A task that is committed before its time, by whomever, comes before
 * later ones. Several workers call several tasks at once. Tasks of a queue without a handler, or that is
 * paused, wait.
 *
 * One process at a time runs the tasks of a file. A lock on a file beside it, whose name ends in "-tickwheel",
 * ends with the process. Do not remove that file: another process could begin then. The first one notices, and
 * its run ends (TW_EREPLACED, see tw_store_error_fn), but calls that are under way may come twice. A run ends
 * so too when the store's file or its log is removed or replaced.
 *
 * Changes by other connections and processes are seen soon after their commit has returned: within a quarter of
 * the time that its sync has taken, and at most half a second. That is within milliseconds on most disks. The
 * first commit of a connection syncs the folder too, and both times count. If a sync takes more than a minute,
 * it is within 30 seconds. The file system must report changes (inotify(7)); without it they are seen within
 * 100 ms. A commit of the run that is under way comes before: its sync, and its wait for a lock of others. The
 * system's clock may be set: the tasks follow it.
 * Returns: 0 or an error.
 *   - TW_EINVAL: tw_store_run_options_check() returns it; or no handler was named, or the store runs already.
 *   - TW_EBUSY: another process runs the tasks of the file, be it of other queues, and the flag does not say to
 *     wait. The message names the process, and its queues if they are not all.
 *   - TW_ESYSTEM: the system has no thread or descriptor left.
 * Cost: memory for max_loaded tasks, 88 bytes each, and at least 16 of each queue that has tasks in the next
 * ten minutes, besides 150 bytes for such a queue. A commit for each batch of jobs. */
int tw_store_start(struct tw_store *store, const struct tw_store_run_options *options);

/* Stops: no handler is called any more. Jobs whose handlers have not begun are given back (TW_ANSWER_BACK).
 * Waits until each other job is answered, and the answers are on the disk. tw_store_close() stops too.
 * Requires: it is not called in a handler, and the caller holds no lock that a handler takes.
 * Returns: 0, also if the store does not run; or an error, because an answer could not be written, and then its
 * task will run again; or TW_EREPLACED, because the run has ended before. */
int tw_store_stop(struct tw_store *store);

/* Looks up which process runs the tasks of the file. It may be this one. A process that stands by runs none.
 * Returns: 0, and the number of the process in *process, or an error. 0: no process runs them; -1: a process
 * that is not known, because it begins at this moment, or may not be looked at. While one process follows
 * another, it may be that of the process before. */
int tw_store_runner(const struct tw_store *store, int64_t *process);

/* Numbers of a store that runs, since its start. All are 0 if it does not run. */
struct tw_store_info {
    bool running;       /* false: it stands by, or has ended (TW_EREPLACED) */
    uint64_t loaded;    /* now: tasks in memory */
    uint64_t jobs;      /* now: jobs under way */
    uint64_t taken;     /* attempts that have begun */
    uint64_t done;      /* attempts that ended by TW_ANSWER_DONE */
    uint64_t failed;    /* attempts that ended by TW_ANSWER_FAILED or TW_ANSWER_DEAD */
    uint64_t lapsed;    /* attempts of earlier runs, and leases of programs, that it has ended */
    uint64_t back;      /* attempts that were given back */
    uint64_t died;      /* tasks and periods that became dead */
    uint64_t dropped;   /* tasks and periods that were later than max_late_ms */
    uint64_t skipped;   /* periods that TW_MISSED_SKIP has passed over */
    uint64_t coalesced; /* periods that calls stood for besides their own */
    uint64_t errors;    /* times that the store could not read or write */
    uint64_t late_p50_ms, late_p99_ms, late_max_ms; /* late_ms of first attempts */
    uint64_t began_ms; /* when it began to run the tasks; a standby: when it took over. 0: not yet */
};

/* Fills in *stats; `size` is sizeof *stats. */
void tw_store_stats(const struct tw_store *store, struct tw_store_info *stats, size_t size);

/* Pauses a queue in the file: so the pause holds for every process, until tw_store_resume(). Handlers that have
 * begun go on, also one that begins at this moment. No other handler of this queue begins after the call has
 * returned. *changed receives false if the queue was paused already.
 * Returns: 0 or an error. TW_EINVAL also for a name that is not UTF-8. */
int tw_store_pause(struct tw_store *store, const char *queue, bool *changed);

/* Ends the pause of a queue. *changed receives false if the queue was not paused.
 * Returns: 0 or an error. */
int tw_store_resume(struct tw_store *store, const char *queue, bool *changed);

/* Looks up whether a queue is paused.
 * Returns: 0, and the answer in *paused, or an error. */
int tw_store_is_paused(const struct tw_store *store, const char *queue, bool *paused);

/* Marks the file as restored from a backup, or takes the mark away. While the file has the mark, every run of
 * it calls nothing, also after a restart. So an operator can look at the tasks first, and cancel the tasks
 * whose work has been done since the backup. Either change makes a run that is under way read the file anew.
 * Handlers that have begun go on, also one that begins at this moment. No other handler begins after the mark
 * is there. After a mark only a run that is under way and programs in SQL have leased tasks.
 * The call is on the disk when it returns, with TW_STORE_OPEN_LAZY too. *changed receives whether that was a
 * change: false, if the file had the mark already, or had none.
 * Returns: 0 or an error. */
int tw_store_mark_restored(struct tw_store *store, bool restored, bool *changed);

/* Looks up whether the file is marked as restored.
 * Returns: 0, and the answer in *restored, or an error. */
int tw_store_is_restored(const struct tw_store *store, bool *restored);

/* ---- dead and waiting tasks ---------------------------------------------------------------------------- */

/* How many tasks one call replays, promotes or purges at most, if its name has no id (its data is NULL). It
 * does so in one commit, and that is fewer if their payloads come to 32 MiB before: call again until it finds
 * none. */
enum { TW_STORE_ALL_MAX = 10000 };

/* Makes a dead task wait again, due at due_ms, under a new revision and with all its tries. A name without an
 * id stands for the dead tasks of the queue, in the order of their deaths, at most TW_STORE_ALL_MAX. *count
 * receives how many tasks: 0, if none was dead.
 * Returns: 0 or an error.
 * Example: `tw_store_replay(store, (struct tw_store_name){.queue = "orders"}, tw_store_now(), NULL)`. */
int tw_store_replay(struct tw_store *store, struct tw_store_name name, uint64_t due_ms, uint64_t *count);

/* Lets a waiting task, also a retry, be ready now: its next_ms is the time of the call, under a new revision.
 * Its due_ms, attempt and error stay. A name without an id stands for the waiting tasks of the queue, in their
 * order, at most TW_STORE_ALL_MAX. Tasks that are ready, leased or dead stay as they are. A pause holds for a
 * promoted task too. *count receives how many tasks: 0, if none was waiting.
 * Returns: 0 or an error. */
int tw_store_promote(struct tw_store *store, struct tw_store_name name, uint64_t *count);

/* Removes a task that died before `before_ms`. A name without an id is as in tw_store_replay(). *count receives
 * how many tasks: 0, if none was dead.
 * Returns: 0 or an error. */
int tw_store_purge(struct tw_store *store, struct tw_store_name name, uint64_t before_ms, uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
