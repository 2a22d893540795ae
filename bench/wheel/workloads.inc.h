/* SPDX-License-Identifier: MIT
 *
 * The workload loops. Each engine's file includes this after it has defined
 *
 *     struct object                     the timer, and at least: uint64_t payload; uint32_t id;
 *     engine_open(engine, timers)       an empty structure at tick 0
 *     engine_prepare(object)            makes an object's timer
 *     engine_add / engine_move(object, deadline), engine_cancel(object)
 *     engine_advance(tick)              fires the due timers: calls handle() for each, through a pointer
 *     engine_next()                     the next event, in any form that the structure has
 *     engine_close()                    ends the structure; timers may be pending
 *
 * A wheel that counts its refiled timers may also define ENGINE_REFILED() and ENGINE_REFILE_SPAN. So the
 * loops of all engines are the same text, and every call is direct. Only set-up and checks lie outside the
 * timed parts.
 */
static struct object *objects;
static const struct load *load;
static struct tally tally;
static enum rearm rearm;

/* The handler of a timer that fires. */
static void handle(struct object *object)
{
    object->payload += now_tick;
    tally_add(&tally, now_tick, object->id);
    if (rearm != REARM_NONE)
        engine_add(object, now_tick + rearm_delay(rearm, object->id, now_tick));
}

static inline void advance(uint64_t tick)
{
    now_tick = tick;
    engine_advance(tick);
}

static inline void add(uint32_t id, uint32_t delay)
{
    struct object *object = &objects[id];
    object->payload++;
    engine_add(object, now_tick + delay);
}

static inline void cancel(uint32_t id)
{
    struct object *object = &objects[id];
    object->payload++;
    engine_cancel(object);
}

static inline void restart(uint32_t id, uint32_t delay)
{
    struct object *object = &objects[id];
    object->payload++;
    engine_cancel(object);
    engine_add(object, now_tick + delay);
}

static inline void move(uint32_t id, uint32_t delay)
{
    struct object *object = &objects[id];
    object->payload++;
    engine_move(object, now_tick + delay);
}

/* ---- set-up ---------------------------------------------------------------------------------------------- */

static void add_first(void)
{
    for (uint32_t i = 0; i < load->timers; i++)
        add(load->visit[i], load->first[load->visit[i]]);
}

static void add_all(const uint32_t *delay)
{
    for (uint32_t i = 0; i < load->timers; i++)
        add(load->visit[i], delay[i]);
}

static void cancel_all(const uint32_t *order)
{
    for (uint32_t i = 0; i < load->timers; i++)
        cancel(order[i]);
}

/* Stores the bytes per timer. All timers are pending, and `before` is from before the structure was made. */
static void note_bytes(struct outcome *outcome, size_t before)
{
    size_t own = bench_heap_bytes() - before;
    outcome->bytes_per_timer = (double)sizeof objects->timer + (double)own / load->timers;
}

/* ---- the workloads --------------------------------------------------------------------------------------- */

static double run_adds(void)
{
    double ns = 0;
    for (uint32_t r = 0; r < load->repeats; r++) {
        if (r > 0)
            cancel_all(load->visit);
        uint64_t start = bench_real_ns();
        add_all(load->delay + (uint64_t)r * load->timers);
        ns += (double)(bench_real_ns() - start);
    }
    return ns;
}

static double run_cancels(void)
{
    double ns = 0;
    for (uint32_t r = 0; r < load->repeats; r++) {
        add_all(load->delay + (uint64_t)r * load->timers);
        uint64_t start = bench_real_ns();
        cancel_all(load->order);
        ns += (double)(bench_real_ns() - start);
    }
    return ns;
}

static double run_churn(void)
{
    uint64_t start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++)
        restart(load->order[k], load->delay[k]);
    return (double)(bench_real_ns() - start);
}

static double run_heartbeat(void)
{
    for (uint32_t i = 0; i < load->timers; i++)
        move(load->visit[i], load->second[load->visit[i]]);
    uint64_t start = bench_real_ns(), k = 0;
    for (uint64_t tick = 1; tick <= load->ticks; tick++) {
        advance(tick);
        for (uint64_t done = load_done(load, tick); k < done; k++)
            move(load->order[k], BEAT_TICKS);
    }
    return (double)(bench_real_ns() - start);
}

static double run_mix(void)
{
    uint64_t start = bench_real_ns(), k = 0;
    for (uint64_t tick = 1; tick <= load->ticks; tick++) {
        advance(tick);
        for (uint64_t done = load_done(load, tick); k < done; k++)
            restart(load->order[k], load->delay[k]);
    }
    return (double)(bench_real_ns() - start);
}

#ifdef ENGINE_REFILED
static uint64_t span_begin; /* the number of timers that had fired when the span began */

static void note_span(void)
{
    span_begin = tally.fired;
}

/* Counts the timers that were refiled on a tick. A slot never holds more timers than fire in its span,
 * because no timer is cancelled. */
static void note_refiled(struct outcome *outcome, uint64_t before)
{
    uint64_t refiled = ENGINE_REFILED() - before;
    if (refiled > outcome->refiled_most)
        outcome->refiled_most = refiled;
    if (now_tick % ENGINE_REFILE_SPAN != 0)
        return;
    uint64_t rule = (tally.fired - span_begin) / ENGINE_REFILE_SPAN + 1;
    if (rule > outcome->refiled_rule)
        outcome->refiled_rule = rule;
    note_span();
}
#else
#define ENGINE_REFILED() 0
#define note_refiled(outcome, before) ((void)(before))
#define note_span() ((void)0)
#endif

/* Measures the mean over some ticks. Then runs as many ticks again and times each by itself. */
static double run_steady(struct outcome *outcome)
{
    uint64_t begin = bench_real_ns();
    while (now_tick < load->ticks)
        advance(now_tick + 1);
    double ns = (double)(bench_real_ns() - begin);
    note_span();
    for (uint64_t i = 0; i < load->ticks; i++) {
        uint64_t refiled = ENGINE_REFILED();
        uint64_t start = bench_real_ns();
        advance(now_tick + 1);
        outcome->tick_ns[i] = (float)(bench_real_ns() - start);
        if (outcome->tick_ns[i] > outcome->worst_ns)
            outcome->worst_ns = outcome->tick_ns[i];
        note_refiled(outcome, refiled);
    }
    return ns;
}

static double run_expiry(void)
{
    double ns = 0;
    uint64_t step = load->workload == EXPIRE_JUMP ? SPREAD_TICKS : 1;
    for (uint32_t r = 0; r < load->repeats; r++) {
        add_all(load->delay + (uint64_t)r * load->timers);
        uint64_t start = bench_real_ns(), end = now_tick + SPREAD_TICKS;
        while (now_tick < end)
            advance(now_tick + step);
        ns += (double)(bench_real_ns() - start);
    }
    return ns;
}

static double run_next(void)
{
    add(0, FAR_TICKS);
    uint64_t sum = 0, start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++) {
        sum += engine_next();
        __asm__ volatile("" : "+r"(sum) : : "memory"); /* so the compiler cannot reuse the result */
    }
    return (double)(bench_real_ns() - start);
}

static double run_quiet(void)
{
    add(0, FAR_TICKS);
    uint64_t start = bench_real_ns();
    for (uint64_t k = 0; k < load->ops; k++)
        advance(now_tick + 1);
    return (double)(bench_real_ns() - start);
}

static double run_empty(void)
{
    double ns = 0;
    for (uint32_t r = 0; r < load->repeats; r++) {
        add(0, FAR_TICKS);
        uint64_t start = bench_real_ns();
        advance(now_tick + EMPTY_TICKS);
        ns += (double)(bench_real_ns() - start);
        cancel(0);
    }
    return ns;
}

static double run_timed(struct outcome *outcome)
{
    switch (load->workload) {
    case ADD_UNIFORM:
    case ADD_CONSTANT:
    case ADD_LOGNORMAL:
        return run_adds();
    case CANCEL_RANDOM:
        return run_cancels();
    case CHURN:
        return run_churn();
    case HEARTBEAT:
        return run_heartbeat();
    case MIX:
        return run_mix();
    case STEADY:
        return run_steady(outcome);
    case EXPIRE_TICK:
    case EXPIRE_JUMP:
        return run_expiry();
    case NEXT_FAR:
        return run_next();
    case EMPTY:
        return run_empty();
    case QUIET:
        return run_quiet();
    default:
        return 0;
    }
}

static void run(const struct engine *engine, const struct load *given, void *arena, struct outcome *outcome)
{
    size_t before = bench_heap_bytes();
    load = given;
    objects = arena;
    tally = (struct tally){0, 0};
    rearm = load->rearm;
    now_tick = 0;
    bench_set_tick(0);
    engine_open(engine, load->timers);
    for (uint32_t i = 0; i < load->timers; i++) {
        objects[i].id = i;
        objects[i].payload = 0;
        engine_prepare(&objects[i]);
    }
    if (load->first != NULL)
        add_first();
    note_bytes(outcome, before);
    outcome->ops = load->ops;
    outcome->ns = run_timed(outcome);
    if (load->workload < CANCEL_RANDOM)
        note_bytes(outcome, before);
    rearm = REARM_NONE;
    for (size_t i = 0; i < load->stop_count; i++)
        if (load->stops[i] > now_tick)
            advance(load->stops[i]);
    engine_close();
    outcome->tally = tally;
}
