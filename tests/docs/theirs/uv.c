/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on libuv: its statements, on Debian's libuv.
 */
#include "claim.h"

#include <uv.h>

static uv_loop_t loop;

/* ---- early --------------------------------------------------------------------------------------------- */

static uv_timer_t first, second, third;
static uint64_t started_ns, fired_ns;

static void note(uv_timer_t *timer)
{
    (void)timer;
    fired_ns = clock_ns();
}

static void ignore(uv_timer_t *timer)
{
    (void)timer;
}

/* libuv computes its sleep from the cached time, too. So the timer is early only if something wakes the loop in
 * between, here a timer of 2 ms. */
static void work_then_start(uv_timer_t *timer)
{
    (void)timer;
    work_ns(15 * ms);
    started_ns = clock_ns();
    uv_timer_start(&second, note, 20, 0);
    uv_timer_start(&third, ignore, 2, 0);
}

static bool counts_from_cached_time(void)
{
    uv_timer_start(&first, work_then_start, 1, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    return fired_ns - started_ns < 20 * ms;
}

/* ---- order, cancel ------------------------------------------------------------------------------------- */

static uv_timer_t equals[CLAIM_EQUALS];
static struct calls calls;

static void note_order(uv_timer_t *timer)
{
    called(&calls, (int)(timer - equals));
}

static bool equals_in_order(void)
{
    calls.count = 0;
    for (int i = 0; i < CLAIM_EQUALS; i++)
        uv_timer_start(&equals[i], note_order, 5, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    return in_filing_order(&calls);
}

static uv_timer_t pair[2];
static int pair_calls;

static void stop_other(uv_timer_t *timer)
{
    pair_calls++;
    uv_timer_stop(&pair[timer == &pair[0]]);
}

static bool stop_of_due_timer_holds(void)
{
    pair_calls = 0;
    for (int i = 0; i < 2; i++)
        uv_timer_start(&pair[i], stop_other, 1, 0);
    work_ns(5 * ms); /* so that both are due in the first iteration */
    uv_run(&loop, UV_RUN_DEFAULT);
    return pair_calls == 1;
}

/* ---- repeat, starvation -------------------------------------------------------------------------------- */

enum { MANY = 1000 };

static int again_calls, checks, checks_at_end;

static void start_again(uv_timer_t *timer)
{
    if (++again_calls < MANY)
        uv_timer_start(timer, start_again, 0, 0);
    else
        checks_at_end = checks;
}

static void count_check(uv_check_t *check)
{
    (void)check;
    checks++;
}

/* A timer that starts itself with a timeout of 0 keeps the loop from its other events. */
static bool zero_timeout_starves(void)
{
    uv_check_t check;
    uv_check_init(&loop, &check);
    uv_check_start(&check, count_check);
    uv_unref((uv_handle_t *)&check);
    uv_timer_start(&first, start_again, 0, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&check, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    return again_calls == MANY && checks_at_end < 2;
}

static uint64_t first_due_ms, next_due_ms;
static int repeat_calls;

static void slow_once(uv_timer_t *timer)
{
    if (++repeat_calls == 1) {
        work_ns(35 * ms);
        return;
    }
    next_due_ms = uv_now(&loop) + uv_timer_get_due_in(timer);
    uv_timer_stop(timer);
}

static bool repeat_loses_its_phase(void)
{
    repeat_calls = 0;
    uv_update_time(&loop);
    uv_timer_start(&first, slow_once, 10, 10);
    first_due_ms = uv_now(&loop) + 10;
    uv_run(&loop, UV_RUN_DEFAULT);
    return repeat_calls == 2 && (next_due_ms - first_due_ms) % 10 != 0;
}

static void init(uv_timer_t *timer)
{
    uv_timer_init(&loop, timer);
}

int main(void)
{
    uv_loop_init(&loop);
    init(&first), init(&second), init(&third), init(&pair[0]), init(&pair[1]);
    for (int i = 0; i < CLAIM_EQUALS; i++)
        init(&equals[i]);
    claim_seen(counts_from_cached_time,
               "after a long callback, and another wake-up, a timer is early by the length of that callback");
    claim(equals_in_order(), "timers with equal due times are called in the order of starting");
    claim(stop_of_due_timer_holds(), "a due timer that a callback stops is not called");
    claim(zero_timeout_starves(), "a timer that starts itself with a timeout of 0 starves the loop");
    claim_seen(repeat_loses_its_phase, "repeat calls once for the missed periods, and counts anew from then");
    claim(sizeof(uv_timer_t) == 152, "a uv_timer_t takes 152 bytes");
    return 0; /* the loop ends with the process: closing its handles is no part of a claim */
}
