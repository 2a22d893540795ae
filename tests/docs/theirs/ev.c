/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on libev: its statements, on Debian's libev.
 */
#include "claim.h"

#include <ev.h>

static struct ev_loop *loop;

/* ---- early --------------------------------------------------------------------------------------------- */

static ev_timer first, second;
static uint64_t started_ns, fired_ns;

static void note(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)timer, (void)events;
    fired_ns = clock_ns();
}

static void work_then_start(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)timer, (void)events;
    work_ns(15 * ms);
    started_ns = clock_ns();
    ev_timer_init(&second, note, 0.020, 0);
    ev_timer_start(ev, &second);
}

static bool counts_from_cached_time(void)
{
    ev_timer_init(&first, work_then_start, 0.001, 0);
    ev_timer_start(loop, &first);
    ev_run(loop, 0);
    return fired_ns - started_ns < 20 * ms;
}

/* ---- order --------------------------------------------------------------------------------------------- */

static ev_timer equals[CLAIM_EQUALS];
static struct calls calls;

static void note_order(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)events;
    called(&calls, (int)(timer - equals));
}

/* The cached time stands still, so the due times are equal. */
static bool equals_in_order(void)
{
    calls.count = 0;
    for (int i = 0; i < CLAIM_EQUALS; i++) {
        ev_timer_init(&equals[i], note_order, 0.005, 0);
        ev_timer_start(loop, &equals[i]);
    }
    ev_run(loop, 0);
    return in_filing_order(&calls);
}

/* ---- cancel, repeat ------------------------------------------------------------------------------------ */

static ev_timer pair[2];
static int pair_calls;

static void stop_other(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)events;
    pair_calls++;
    ev_timer_stop(ev, &pair[timer == &pair[0]]);
}

static bool stop_of_due_timer_holds(void)
{
    pair_calls = 0;
    for (int i = 0; i < 2; i++) {
        ev_timer_init(&pair[i], stop_other, 0.001, 0);
        ev_timer_start(loop, &pair[i]);
    }
    work_ns(5 * ms); /* so that both are due in the first iteration */
    ev_run(loop, 0);
    return pair_calls == 1;
}

static double first_due, next_due;
static int repeat_calls;

static void slow_once(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)events;
    if (++repeat_calls == 1) {
        work_ns(35 * ms);
        return;
    }
    next_due = ev_now(ev) + ev_timer_remaining(ev, timer);
    ev_timer_stop(ev, timer);
}

static bool repeat_loses_its_phase(void)
{
    repeat_calls = 0;
    ev_now_update(loop);
    ev_timer_init(&first, slow_once, 0.010, 0.010);
    ev_timer_start(loop, &first);
    first_due = ev_now(loop) + ev_timer_remaining(loop, &first);
    ev_run(loop, 0);
    return repeat_calls == 2 && !in_phase(0, (uint64_t)((next_due - first_due) * 1e9), 10 * ms);
}

int main(void)
{
    loop = ev_loop_new(0);
    claim_seen(counts_from_cached_time,
               "after a long callback a timer is early by the length of that callback");
    claim(!equals_in_order(), "timers with equal due times are not called in the order of starting");
    claim(stop_of_due_timer_holds(), "a due timer that a callback stops is not called");
    claim_seen(repeat_loses_its_phase, "repeat calls once for the missed periods, and counts anew from then");
    claim(sizeof(ev_timer) == 48, "an ev_timer takes 48 bytes");
    ev_loop_destroy(loop);
    return 0;
}
