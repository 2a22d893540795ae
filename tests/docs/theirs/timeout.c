/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on timeout.c: its statements, on the copy in Debian's source of tor.
 * run_timeout fetches that source, and compiles this file with its folder in the include path.
 */
#include "claim.h"

#include <stddef.h>
#include <timeout.c>

static struct timeouts *wheel;

static void open_wheel(void)
{
    int error;
    wheel = timeouts_open(0, &error);
}

/* The expiry times of the timeouts that are due at `now`, in the order of timeouts_get(). */
static int due_at(uint64_t now, uint64_t *times, int room)
{
    struct timeout *timeout;
    int count = 0;
    timeouts_update(wheel, now);
    while (count < room && (timeout = timeouts_get(wheel)) != NULL)
        times[count++] = timeout->expires;
    return count;
}

static bool order_is_not_of_time(void)
{
    struct timeout timers[3] = {TIMEOUT_INITIALIZER(0), TIMEOUT_INITIALIZER(0), TIMEOUT_INITIALIZER(0)};
    const uint64_t at[3] = {62, 66, 200};
    uint64_t times[3] = {0};
    open_wheel();
    timeouts_update(wheel, 60);
    for (int i = 0; i < 3; i++)
        timeouts_add(wheel, &timers[i], at[i] - 60);
    const int count = due_at(300, times, 3);
    timeouts_close(wheel);
    return count == 3 && !(times[0] <= times[1] && times[1] <= times[2]);
}

static bool counts_from_the_last_update(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(0);
    uint64_t time;
    open_wheel();
    timeouts_update(wheel, 100); /* now the program's clock goes on to 150 */
    timeouts_add(wheel, &timer, 60);
    const bool due = due_at(160, &time, 1) == 1; /* 10 after the call, not 60 */
    timeouts_close(wheel);
    return due;
}

static bool sums_wrap(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(0);
    open_wheel();
    timeouts_update(wheel, 100);
    timeouts_add(wheel, &timer, UINT64_MAX);
    const bool due = timeouts_get(wheel) == &timer;
    timeouts_close(wheel);
    return due;
}

static bool zero_is_due_in_the_same_round(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(0), *due;
    int rounds = 0;
    open_wheel();
    timeouts_add(wheel, &timer, 0);
    while (rounds < 1000 && (due = timeouts_get(wheel)) != NULL) {
        timeouts_add(wheel, due, 0);
        rounds++;
    }
    timeouts_close(wheel);
    return rounds == 1000;
}

static bool interval_keeps_its_phase(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(TIMEOUT_INT);
    open_wheel();
    timeouts_add(wheel, &timer, 10);
    timeouts_update(wheel, 35); /* 10, 20 and 30 have passed */
    const bool once = timeouts_get(wheel) == &timer && timeouts_get(wheel) == NULL;
    const bool in_step = timer.expires == 40;
    timeouts_close(wheel);
    return once && in_step;
}

static bool next_is_a_bound(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(0);
    open_wheel();
    const bool never = timeouts_timeout(wheel) == UINT64_MAX;
    timeouts_add(wheel, &timer, 5000);
    const bool earlier = timeouts_timeout(wheel) < 5000;
    timeouts_close(wheel);
    return never && earlier;
}

static bool far_timer_is_not_early(void)
{
    struct timeout timer = TIMEOUT_INITIALIZER(0);
    const uint64_t far = UINT64_C(1) << 30;
    uint64_t time;
    open_wheel();
    timeouts_add(wheel, &timer, far);
    uint64_t now = 0, wakes = 0;
    for (; now < far && due_at(now, &time, 1) == 0; wakes++)
        now += timeouts_timeout(wheel);
    timeouts_close(wheel);
    printf("a timeout in 2^30 ticks wakes the program %llu times\n", (unsigned long long)wakes);
    return now == far && wakes > 32;
}

int main(void)
{
    claim(order_is_not_of_time(), "timeouts that one update makes due are not in the order of time");
    claim(counts_from_the_last_update(), "timeouts_add() counts from the last update, so it may be early");
    claim(sums_wrap(), "a sum past the end of time wraps, and the timeout is due at once");
    claim(zero_is_due_in_the_same_round(),
          "a timeout that adds itself with 0 keeps the loop of timeouts_get()");
    claim(interval_keeps_its_phase(), "TIMEOUT_INT skips the missed periods and keeps its phase");
    claim(next_is_a_bound(), "timeouts_timeout() is a bound, and the largest number if nothing is pending");
    claim(far_timer_is_not_early(),
          "past 2^24 ticks a timeout goes round, with more wake-ups, and is not early");
    claim(sizeof(struct timeout) == 72, "a struct timeout takes 72 bytes");
    return 0;
}
