/* SPDX-License-Identifier: MIT
 *
 * The iterations of the event loop, which are called turns here. Each engine's file includes this after it
 * has defined
 *
 *     struct connection             from BENCH_CONNECTION(type of its timer)
 *     engine_open(), engine_close() the loop
 *     engine_watch(fd, ready)       calls ready() in each iteration in which the descriptor is readable; the
 *                                   loads watch at most two descriptors
 *     engine_start(connection)      makes the timer and starts it
 *     engine_turn()                 is called once in an iteration, before the reads
 *     engine_beat(connection)       pushes the timer back
 *     engine_run(), engine_stop()   runs the loop until it is stopped
 *
 * The loop calls reap() when a timer has expired. So the reads of all engines are the same text, and each
 * call is direct.
 */
static const struct plan *plan;
static bool bare; /* the same iterations and reads, without timers */
static struct connection *connections;
static const uint32_t *reads; /* the connections that are still to be read; reads_left is their number */
static uint64_t reads_left, turns_left;
static uint32_t accepted;
static uint64_t brought; /* live: how often the network has woken the loop */
static uint32_t reaped;
static uint64_t late_turns_most;

/* The callback of every timer that expires. It checks that the timer expires once, not early, and not much
 * later. */
static void reap(struct connection *connection)
{
    uint64_t now = steer_ms(), due = (uint64_t)connection->heard_ms + IDLE_MS;
    if (connection->reaped || now < due)
        bench_fail("connection %u was reaped %s", connection->id, connection->reaped ? "twice" : "early");
    connection->reaped = true;
    reaped++;
    uint64_t late = (now - due) / plan->turn_ms;
    late_turns_most = late > late_turns_most ? late : late_turns_most;
}

/* ---- reads ----------------------------------------------------------------------------------------------- */

/* For each read a server stores the time in the connection, beside the timer. */
static inline void read_bare(uint64_t count, uint32_t now)
{
    for (uint64_t i = 0; i < count; i++)
        connections[reads[i]].heard_ms = now;
}

static inline void read_beating(uint64_t count, uint32_t now)
{
    engine_turn();
    for (uint64_t i = 0; i < count; i++) {
        struct connection *connection = &connections[reads[i]];
        connection->heard_ms = now;
        engine_beat(connection);
    }
}

static void read_some(uint64_t most)
{
    uint64_t count = reads_left < most ? reads_left : most;
    if (bare)
        read_bare(count, (uint32_t)steer_ms());
    else
        read_beating(count, (uint32_t)steer_ms());
    reads += count;
    reads_left -= count;
}

static void accept_some(void)
{
    for (uint32_t i = 0; i < plan->accepts && accepted < plan->connections; i++) {
        uint32_t id = plan->visit[accepted++];
        connections[id] = (struct connection){.id = id, .heard_ms = (uint32_t)steer_ms()};
        if (!bare)
            engine_start(&connections[id]);
    }
}

static void on_ready(void)
{
    accept_some();
    read_some(plan->per_turn);
    steer_on(plan->turn_ms);
    if (--turns_left == 0)
        engine_stop();
}

/* The processor time of this process. */
static double cpu_ns(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    return s * 1e9 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

/* Runs this many iterations in virtual time, in which the loop never sleeps. Returns their processor time. */
static double run_turns(const uint32_t *order, uint64_t count, uint64_t turns)
{
    reads = order;
    reads_left = count;
    turns_left = turns;
    double begin = cpu_ns();
    engine_run();
    return cpu_ns() - begin;
}

static double run_reads(const uint32_t *order, uint64_t count)
{
    return run_turns(order, count, (count + plan->per_turn - 1) / plan->per_turn);
}

/* ---- live ------------------------------------------------------------------------------------------------ */

static void on_pace(void)
{
    uint64_t paces = steer_paces();
    brought++;
    paces = paces < turns_left ? paces : turns_left;
    read_some(paces * plan->connections * PACE_MS / PERIOD_MS);
    turns_left -= paces;
    if (turns_left == 0)
        engine_stop();
}

static long sleeps(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

/* Measures the processor time that the timers take in live time, in which the loop sleeps while the network
 * brings nothing. */
static void run_live(struct outcome *outcome)
{
    reads = plan->order + plan->accept_reads + plan->warm_reads; /* of connections that are not silent */
    reads_left = plan->timed_reads;
    turns_left = plan->live_ms / PACE_MS;
    brought = 0;
    steer_live(true);
    uint64_t begin = bench_real_ns(), arms = steer_arms();
    long slept = sleeps();
    double cpu = cpu_ns();
    engine_run();
    double s = (double)(bench_real_ns() - begin) / 1e9;
    outcome->cpu_ms_per_s = (cpu_ns() - cpu) / 1e6 / s;
    outcome->wakeups_per_s = (double)(sleeps() - slept - (long)brought) / s;
    outcome->arms_per_s = (double)(steer_arms() - arms) / s;
    steer_live(false);
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void expect_reaped(uint32_t wanted, const char *when)
{
    if (reaped != (bare ? 0 : wanted))
        bench_fail("%u connections were reaped %s, and %u had fallen silent", reaped, when, wanted);
}

/* Reads each remaining connection once more, and then none. All of them must expire in time. */
static void fall_silent(void)
{
    run_reads(plan->left, plan->connections - plan->silent);
    run_turns(NULL, 0, IDLE_MS / plan->turn_ms + LATE_TURNS);
    expect_reaped(plan->connections, "in the end");
    if (late_turns_most > LATE_TURNS)
        bench_fail("a connection was reaped %llu turns late", (unsigned long long)late_turns_most);
}

static void run(const struct plan *given, void *arena, bool no_timers, struct outcome *outcome)
{
    size_t before = bench_heap_bytes();
    plan = given;
    bare = no_timers;
    connections = arena;
    reaped = accepted = 0;
    late_turns_most = 0;
    steer_open();
    engine_open();
    engine_watch(steer_ready_fd(), on_ready);
    engine_watch(steer_pace_fd(), on_pace);
    run_reads(plan->order, plan->accept_reads);
    outcome->bytes =
        (double)sizeof connections->timer + (double)(bench_heap_bytes() - before) / plan->connections;
    run_reads(reads, plan->warm_reads);
    outcome->ns = run_reads(reads, plan->timed_reads) / (double)plan->timed_reads;
    expect_reaped(plan->silent, "while the others were read");
    run_live(outcome);
    expect_reaped(plan->silent, "in true time");
    if (!bare)
        fall_silent();
    outcome->late_turns_most = late_turns_most;
    engine_close();
    steer_close();
}
