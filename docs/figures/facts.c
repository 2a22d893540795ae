/* SPDX-License-Identifier: MIT
 *
 * Asks the library for the facts that the figures show, and prints them as tab-separated lines. The first
 * word of a line names its figure. The program reads no clock, and its random numbers have a seed, so that
 * the same library always gives the same facts.
 *
 *     wheel      level slots span slot-from-now timers     a default wheel with real timers in it
 *     draining   level slots span timers                   the slot that it is refiling meanwhile
 *     filing     level shortest longest                    the delays that each level may take
 *     refiled    textbook|default tick timers              timers refiled on a tick that refiled any
 *     hint       place place|-                             a slot's list from its head: each hint's place
 *     due        due-ns ran-ns                             tasks of the scheduler in ticks of a millisecond
 *     late       tenth-of-a-tick tasks                     how late 100,000 tasks with random due times ran
 */
#include <tickwheel/sched.h>
#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wheel/internal.h>

enum { LINE = 64, LEVELS_SHOWN = 4, TIMERS = 200000, SHOWN = 24, TENTHS = 10, TASKS = 100000 };

struct object {
    struct tw_timer timer;
    char rest[LINE - sizeof(struct tw_timer)];
};

static void give_up(const char *what)
{
    fprintf(stderr, "facts: %s\n", what);
    exit(1);
}

/* A linear congruential generator (Knuth's MMIX); its upper half is random enough for pictures. */
static uint64_t below(uint64_t limit)
{
    static uint64_t state = 20261121;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % limit;
}

static struct tw_wheel *make(const struct tw_geometry *geometry, uint64_t now)
{
    struct tw_wheel *wheel;
    if (tw_wheel_new(&wheel, geometry, now) != 0)
        give_up("no memory");
    return wheel;
}

static struct object *make_objects(size_t count)
{
    struct object *objects = aligned_alloc(LINE, count * sizeof *objects);
    if (objects == NULL)
        give_up("no memory");
    memset(objects, 0, count * sizeof *objects);
    return objects;
}

/* ---- the wheel ------------------------------------------------------------------------------------------- */

/* A server's timeouts in milliseconds: retries, idle connections, sessions, orders, daily jobs. */
static uint64_t some_delay(void)
{
    static const uint64_t SHORT[] = {200, 20000, 600000, 1800000, 86400000};
    static const uint64_t SPREAD[] = {800, 40000, 1200000, 10000, 600000000};
    uint64_t kind = below(5);
    return SHORT[kind] + below(SPREAD[kind]);
}

static void print_ring(const struct tw_wheel *wheel, uint32_t l)
{
    struct tw_level_info info;
    tw_wheel_level(wheel, l, &info, sizeof info);
    for (uint32_t i = 0; i < info.slots; i++) {
        uint64_t timers = tw_wheel_slot_count(wheel, l, (info.current + i) % info.slots);
        if (timers > 0)
            printf("wheel\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", l, info.slots,
                   info.span, i, timers);
    }
    if (info.draining > 0)
        printf("draining\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\n", l, info.slots, info.span,
               info.draining);
}

/* Prints the rings of a wheel to which timers have come for ten minutes, at a pace that leaves some on each
 * level. The clock stops while a slot is being refiled. */
static void tell_wheel(void)
{
    struct tw_wheel *wheel = make(NULL, 86400000);
    struct object *objects = make_objects(TIMERS);
    uint64_t now = 86400000;
    for (uint32_t i = 0; i < TIMERS; i++) {
        now += below(7);
        while (tw_wheel_poll(wheel, now) != NULL)
            ;
        tw_wheel_add_in(wheel, &objects[i].timer, some_delay());
    }
    while (tw_wheel_poll(wheel, (now | 65535) + 100) != NULL) /* soon after a slot of level 2 has begun */
        ;
    for (uint32_t l = 0; l < LEVELS_SHOWN; l++)
        print_ring(wheel, l);
    tw_wheel_free(wheel);
    free(objects);
}

/* ---- filing ---------------------------------------------------------------------------------------------- */

static uint32_t level_of(uint64_t now, uint64_t delay)
{
    struct tw_wheel *wheel = make(NULL, now);
    struct tw_level_info info;
    struct tw_timer timer;
    uint32_t l = 0;
    tw_timer_init(&timer);
    tw_wheel_add_in(wheel, &timer, delay);
    for (tw_wheel_level(wheel, l, &info, sizeof info); info.filed == 0;)
        tw_wheel_level(wheel, ++l, &info, sizeof info);
    tw_wheel_free(wheel);
    return l;
}

/* Returns the shortest delay that is filed on level l or above when the clock stands at `now`. */
static uint64_t first_delay(uint64_t now, uint32_t l)
{
    uint64_t low = 0, high = (uint64_t)1 << 50; /* too short, long enough */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (level_of(now, middle) >= l)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Prints the delays of each level. The windows are shortest at the end of the widest slots, and longest at
 * their beginning. */
static void tell_filing(void)
{
    const uint64_t begin = (uint64_t)1 << 60, end = begin - 1;
    for (uint32_t l = 0; l < 6; l++)
        printf("filing\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\n", l, l == 0 ? 1 : first_delay(end, l),
               first_delay(begin, l + 1) - 1);
}

/* ---- lookahead ------------------------------------------------------------------------------------------- */

/* Rings of 256, each as long as one slot above: the wheel of the textbooks. */
static struct tw_geometry textbook(void)
{
    struct tw_geometry g = {.levels = 4, .overflow = TW_OVERFLOW_REJECT};
    for (uint32_t l = 0; l < g.levels; l++)
        g.level[l] = (struct tw_level){.slots = 256, .span = (uint64_t)1 << (8 * l)};
    return g;
}

/* Prints the refilings of a steady load of timers of up to 100,000 ticks, near the end of a slot of the
 * textbook's level 2. */
static void tell_refiled(const char *name, const struct tw_geometry *geometry)
{
    enum { LONGEST = 100000, FROM = 65536 - 1024, UNTIL = 65536 + 1024 };
    struct tw_wheel *wheel = make(geometry, 0);
    struct object *objects = make_objects(TIMERS);
    for (uint32_t i = 0; i < TIMERS; i++)
        tw_wheel_add_in(wheel, &objects[i].timer, 1 + (uint64_t)i * LONGEST / TIMERS);
    for (uint64_t tick = 1; tick < UNTIL; tick++) {
        uint64_t before = tw_wheel_refiled(wheel);
        for (struct tw_timer *timer; (timer = tw_wheel_poll(wheel, tick)) != NULL;)
            tw_wheel_add_in(wheel, timer, LONGEST);
        uint64_t refiled = tw_wheel_refiled(wheel) - before;
        if (tick >= FROM && refiled > 0)
            printf("refiled\t%s\t%" PRIu64 "\t%" PRIu64 "\n", name, tick, refiled);
    }
    tw_wheel_free(wheel);
    free(objects);
}

/* ---- hints ----------------------------------------------------------------------------------------------- */

/* The argument of a visit to a list, from its head on. */
struct hints {
    const struct object *objects;
    int shown;
};

/* Prints a timer's hint. Each object is one cache line. A line outside of the objects belongs to no timer, as
 * no timer was in the trail yet. */
static int print_hint(void *arg, struct tw_timer *timer)
{
    struct hints *hints = arg;
    uint32_t line = tw__wheel_hint_line(timer), first = (uint32_t)((uintptr_t)hints->objects / LINE);
    if (line - first < SHOWN)
        printf("hint\t%d\t%" PRIu32 "\n", hints->shown++, line - first);
    else
        printf("hint\t%d\t-\n", hints->shown++);
    return 0;
}

/* Timers are filed in the order of their places in memory, so a cache line is a place in the list. */
static void tell_hints(void)
{
    struct tw_wheel *wheel = make(NULL, 0);
    struct object *objects = make_objects(SHOWN);
    for (int i = 0; i < SHOWN; i++)
        tw_wheel_add_at(wheel, &objects[i].timer, 10000);
    tw_wheel_visit(wheel, print_hint, &(struct hints){objects, 0});
    tw_wheel_free(wheel);
    free(objects);
}

/* ---- lateness -------------------------------------------------------------------------------------------- */

static uint64_t late[TENTHS + 1];

static void ran(struct tw_sched *sched, const struct tw_task *task)
{
    uint64_t now = tw_sched_now(sched);
    if (now < task->due_ns)
        give_up("a task ran early");
    if (task->arg == NULL)
        printf("due\t%" PRIu64 "\t%" PRIu64 "\n", task->due_ns, now);
    else
        late[(now - task->due_ns) * TENTHS / 1000000]++;
}

static void tell_lateness(void)
{
    static const uint64_t DUE_US[] = {400, 1250, 1900, 3000, 3050, 4600};
    struct tw_sched *sched;
    const struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    if (tw_sched_new(&sched, &options) != 0)
        give_up("no scheduler");
    for (size_t i = 0; i < sizeof DUE_US / sizeof *DUE_US; i++)
        tw_sched_add_at(sched, DUE_US[i] * 1000, ran, NULL, NULL);
    for (int i = 0; i < TASKS; i++)
        tw_sched_add_at(sched, 10000000 + below(1000000000), ran, late, NULL);
    tw_sched_advance(sched, UINT64_C(2000000000));
    for (int i = 0; i <= TENTHS; i++)
        printf("late\t%d\t%" PRIu64 "\n", i, late[i]);
    tw_sched_free(sched);
}

int main(void)
{
    tell_wheel();
    tell_filing();
    const struct tw_geometry rings = textbook();
    tell_refiled("textbook", &rings);
    tell_refiled("default", NULL);
    tell_hints();
    tell_lateness();
    return 0;
}
