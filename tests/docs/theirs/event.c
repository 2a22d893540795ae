/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on libevent: its statements, on Debian's libevent.
 */
#include "claim.h"

#include <event2/event.h>
#include <event2/event_struct.h>

static struct event_base *base;

static struct timeval tv_of(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / 1000000000),
                            .tv_usec = (suseconds_t)(ns % 1000000000 / 1000)};
}

static void ignore(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events, (void)arg;
}

/* ---- early --------------------------------------------------------------------------------------------- */

static uint64_t added_ns, fired_ns;

static void note(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events, (void)arg;
    fired_ns = clock_ns();
}

/* libevent computes its sleep from the cached time, too. So the timer is early only if something wakes the loop
 * in between, here a timer of 2 ms. */
static void work_then_add(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events;
    const struct timeval in_20 = tv_of(20 * ms), in_2 = tv_of(2 * ms);
    work_ns(15 * ms);
    added_ns = clock_ns();
    event_add(arg, &in_20);
    event_base_once(base, -1, EV_TIMEOUT, ignore, NULL, &in_2);
}

static bool counts_from_cached_time(void)
{
    const struct timeval in_1 = tv_of(1 * ms);
    struct event second;
    evtimer_assign(&second, base, note, NULL);
    event_base_once(base, -1, EV_TIMEOUT, work_then_add, &second, &in_1);
    event_base_dispatch(base);
    return fired_ns - added_ns < 20 * ms;
}

/* Other timers wake the loop meanwhile, so that it looks at its coarse clock. */
static bool counts_by_coarse_clock(void)
{
    const struct timeval in_6 = tv_of(6 * ms);
    struct event timer;
    evtimer_assign(&timer, base, note, NULL);
    work_ns((uint64_t)(rand() % 4000) * 1000);
    added_ns = clock_ns();
    evtimer_add(&timer, &in_6);
    for (uint64_t i = 1; i < 6; i++) {
        const struct timeval in_i = tv_of(i * ms);
        event_base_once(base, -1, EV_TIMEOUT, ignore, NULL, &in_i);
    }
    event_base_dispatch(base);
    return fired_ns - added_ns < 6 * ms;
}

/* ---- order --------------------------------------------------------------------------------------------- */

static struct event equals[CLAIM_EQUALS];
static struct calls calls;

static void note_order(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events;
    called(&calls, (int)((struct event *)arg - equals));
}

static void add_equals(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events;
    for (int i = 0; i < CLAIM_EQUALS; i++) {
        evtimer_assign(&equals[i], base, note_order, &equals[i]);
        evtimer_add(&equals[i], arg);
    }
}

/* In one callback the cached time stands still, so the due times are equal. */
static bool equals_in_order(const struct timeval *timeout)
{
    const struct timeval in_1 = tv_of(1 * ms);
    calls.count = 0;
    event_base_once(base, -1, EV_TIMEOUT, add_equals, (void *)timeout, &in_1);
    event_base_dispatch(base);
    return in_filing_order(&calls);
}

/* ---- cancel, repeat ------------------------------------------------------------------------------------ */

static struct event pair[2];
static int pair_calls;

static void cancel_other(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events;
    pair_calls++;
    evtimer_del(&pair[arg == &pair[0]]);
}

static bool cancel_of_due_timer_holds(void)
{
    const struct timeval in_1 = tv_of(1 * ms);
    pair_calls = 0;
    for (int i = 0; i < 2; i++) {
        evtimer_assign(&pair[i], base, cancel_other, &pair[i]);
        evtimer_add(&pair[i], &in_1);
    }
    work_ns(5 * ms); /* so that both are due in the first iteration */
    event_base_dispatch(base);
    return pair_calls == 1;
}

static struct event repeating;
static uint64_t first_due_ns, next_due_ns;
static int repeat_calls;

static uint64_t due_ns(const struct event *timer)
{
    struct timeval tv;
    event_pending(timer, EV_TIMEOUT, &tv);
    return (uint64_t)tv.tv_sec * 1000000000 + (uint64_t)tv.tv_usec * 1000;
}

static void slow_once(evutil_socket_t fd, short events, void *arg)
{
    (void)fd, (void)events, (void)arg;
    if (++repeat_calls == 1)
        work_ns(35 * ms);
    else
        next_due_ns = due_ns(&repeating), event_del(&repeating);
}

static bool persist_loses_its_phase(void)
{
    const struct timeval in_10 = tv_of(10 * ms);
    event_assign(&repeating, base, -1, EV_PERSIST, slow_once, NULL);
    event_add(&repeating, &in_10);
    first_due_ns = due_ns(&repeating);
    repeat_calls = 0;
    event_base_dispatch(base);
    return repeat_calls == 2 && !in_phase(first_due_ns, next_due_ns, 10 * ms);
}

int main(void)
{
    base = event_base_new();
    const struct timeval in_5 = tv_of(5 * ms);
    claim_seen(counts_from_cached_time,
               "after a long callback, and another wake-up, a timer is early by the length of that callback");
    struct timespec coarse;
    clock_getres(CLOCK_MONOTONIC_COARSE, &coarse);
    if (coarse.tv_nsec >= 2000000)
        claim_seen(counts_by_coarse_clock, "a timer is early by up to a step of CLOCK_MONOTONIC_COARSE");
    claim(!equals_in_order(&in_5), "timers with equal due times are not called in the order of adding");
    claim(equals_in_order(event_base_init_common_timeout(base, &in_5)), "with a common timeout they are");
    claim(cancel_of_due_timer_holds(), "a due timer that a callback deletes is not called");
    claim_seen(persist_loses_its_phase,
               "EV_PERSIST calls once for the missed periods, and counts anew from then");
    claim(event_get_struct_event_size() == 128, "an event takes 128 bytes");
    event_base_free(base);
    return 0;
}
