/* SPDX-License-Identifier: MIT
 *
 * Shared by all files of the module: its state, which is one object, the reasons why deliveries wait, and
 * the time.
 */
#ifndef TW_REDIS_SHARED_H
#define TW_REDIS_SHARED_H

#include <redismodule.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queues/bytes.h"
#include "queues/state.h"

/* The flags of a context while a data set is loaded, in either way. */
enum { TW__REDIS_LOADING = REDISMODULE_CTX_FLAGS_LOADING | REDISMODULE_CTX_FLAGS_ASYNC_LOADING };

/* Why a delivery was put off. */
enum tw__redis_defer {
    TW__REDIS_DEFER_NONE,
    TW__REDIS_DEFER_STOPPED, /* the setting tickwheel.deliver is no */
    TW__REDIS_DEFER_PAUSE,
    TW__REDIS_DEFER_ROLE,
    TW__REDIS_DEFER_OOM,
    TW__REDIS_DEFER_SLOT,
    TW__REDIS_DEFER_REPLICAS,
    TW__REDIS_DEFER_DISK,
    TW__REDIS_DEFER_REFUSED,
    TW__REDIS_DEFERS
};

/* Counts since the server started. Each queue keeps further counts (queues/state.h). */
struct tw__redis_counts {
    uint64_t put, cancelled, moved, expired_tasks, evicted_tasks, clock_jumps;
    uint64_t offered, renewed; /* of tasks for workers */
    uint64_t replayed, purged;
    uint64_t refused_commands; /* of the append-only file and the primary (refused.c) */
    uint64_t deferred[TW__REDIS_DEFERS];
    uint64_t tick_us_max;
};

enum { TW__REDIS_REFUSAL_MAX = 512 };

/* The last error that a command has replied with, for refused.c. */
struct tw__redis_refusal {
    const RedisModuleCtx *ctx; /* of the command; NULL: none since the last command that writes began */
    uint64_t told;             /* the number in the last sum */
    char text[TW__REDIS_REFUSAL_MAX];
};

/* Whether anybody reads what the module logs (log.c). */
enum tw__redis_readers { TW__REDIS_READERS_UNKNOWN, TW__REDIS_READERS_NONE, TW__REDIS_READERS_SOME };

/* The state of the module. All objects that it points at are created when the module is loaded, except for
 * the open batch. */
struct tw__redis_shared {
    struct tw__redis_queues *queues;
    RedisModuleType *type; /* of a key whose value is a queue */
    struct tw__redis_counts counts;
    struct tw__redis_refusal refusal;
    struct tw__redis_buffer log;                /* the changes of this command; empty whenever others may run */
    struct tw__redis_calls *calls;              /* strings that deliveries share (call.c) */
    struct tw__redis_lateness_counts *lateness; /* lateness.c */
    struct tw__redis_batch *batch;              /* the open batch; NULL: no delivery is under way */
    enum tw__redis_readers readers;
    uint32_t loads;        /* loads of a data set that have begun and not ended; they may nest (events.c) */
    uint64_t iteration_ms; /* the wall clock when this event-loop iteration began, or since then (clock.c) */
    bool serving;          /* whether workers could end their leases at the last tick, and since then */
    uint64_t serving_since_ms; /* since when that has been so */
};
extern struct tw__redis_shared tw__redis_shared;

/* Returns whether a data set is being loaded, regardless of the server's flag. */
static inline bool tw__redis_loading(void)
{
    return tw__redis_shared.loads > 0;
}

/* The wall clock. */
uint64_t tw__redis_now_ms(void);

/* ---- the log (log.c) ------------------------------------------------------------------------------------- */

/* Tells the append-only file and the replicas what has become of tasks of a queue (queues/change.h). Requires:
 * there are changes. */
void tw__redis_log_changes(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct tw__redis_buffer *changes);

/* The same for the changes of a command in tw__redis_shared.log, if there are any. It is empty afterwards. */
void tw__redis_log_command(RedisModuleCtx *ctx, RedisModuleString *name);

/* Returns where a command may write its changes: tw__redis_shared.log, or NULL if nobody reads them. */
struct tw__redis_buffer *tw__redis_log_open(RedisModuleCtx *ctx);
/* Tells of the changes in `log`, from tw__redis_log_open(), and empties it. If it is NULL, counts that there
 * are some. */
void tw__redis_log_close(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_buffer *log);

/* Somebody may read from now on. */
void tw__redis_log_forget_readers(void);

/* ---- whether somebody has set it (clock.c) --------------------------------------------------------------- */

/* Looks at the clocks. tw__redis_shared.iteration_ms is the time of this look. Requires: no batch is open. */
void tw__redis_clock_look(RedisModuleCtx *ctx);

/* Returns the present time for a command that files leases. If the last look may have another opinion of the
 * time, and no batch is open, the call looks once more. */
uint64_t tw__redis_clock_now(RedisModuleCtx *ctx);

/* Returns whether the clock was set, by a step or slowly, since this function returned true last. */
bool tw__redis_clock_was_set(void);

/* ---- whether the server lets the module write now (gate.c) ----------------------------------------------- */

/* Returns TW__REDIS_DEFER_NONE if the server may deliver now, or why it may not. Replicas, disks and slots are
 * not asked about: the server itself refuses a call that they do not allow. */
enum tw__redis_defer tw__redis_gate(RedisModuleCtx *ctx);

/* Returns whether this server is a replica. Then its due tasks wait until the primary has delivered them, or
 * given them to workers. */
bool tw__redis_gate_is_replica(RedisModuleCtx *ctx);

/* Returns whether memory is full, so that a command without the flag deny-oom must not take more of it. False
 * for commands of the log and of the primary, which repeat changes that were made before. */
bool tw__redis_gate_is_full(RedisModuleCtx *ctx);

/* Returns why the server has refused a call with this error: TW__REDIS_DEFER_REFUSED if the reason lies in the
 * call, or another reason, which will be over some time. */
enum tw__redis_defer tw__redis_gate_refusal(struct tw__redis_bytes error);

#endif
