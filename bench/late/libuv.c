/* SPDX-License-Identifier: MIT
 *
 * libuv's timers. Only the thread of a loop may touch it, so the probes wait for an async handle.
 */
#include "side.h"

#include <uv.h>

struct timer {
    uv_timer_t uv;
    uint64_t due_us;
};

static struct {
    uv_loop_t loop;
    uv_async_t wake;
    uv_thread_t thread;
    uv_sem_t filed;
    const uint64_t *due_us; /* NULL: the loop shall stop */
    size_t n;
    int runs;
} self;

static void on_due(uv_timer_t *timer)
{
    called(((struct timer *)timer)->due_us);
}

/* libuv counts from a whole millisecond, at or before now. With the time since then, and rounded up, no timer
 * is early. */
static uint64_t delay_ms(uint64_t due_us)
{
    uint64_t since_ns = uv_hrtime() - uv_now(&self.loop) * NS_PER_MS;
    return (since_ns + until_ns(due_us) + NS_PER_MS - 1) / NS_PER_MS;
}

static void file_here(const uint64_t *due_us, size_t n)
{
    struct timer *timers = need(n, sizeof *timers); /* they are there until the process ends */
    uv_update_time(&self.loop);
    for (size_t i = 0; i < n; i++) {
        timers[i].due_us = due_us[i];
        uv_timer_init(&self.loop, &timers[i].uv);
        uv_timer_start(&timers[i].uv, on_due, delay_ms(due_us[i]), 0);
    }
}

static void on_wake(uv_async_t *wake)
{
    (void)wake;
    if (self.due_us == NULL) {
        uv_stop(&self.loop);
        return;
    }
    file_here(self.due_us, self.n);
    self.due_us = NULL;
    uv_sem_post(&self.filed);
}

static void open_loop(const char *path)
{
    (void)path;
    if (uv_loop_init(&self.loop) != 0 || uv_async_init(&self.loop, &self.wake, on_wake) != 0 ||
        uv_sem_init(&self.filed, 0) != 0)
        fail("libuv: there is no loop");
}

static void file_tasks(const uint64_t *due_us, size_t n)
{
    if (!self.runs) {
        file_here(due_us, n);
        return;
    }
    self.due_us = due_us;
    self.n = n;
    uv_async_send(&self.wake);
    uv_sem_wait(&self.filed);
}

static void run_loop(void *none)
{
    (void)none;
    uv_run(&self.loop, UV_RUN_DEFAULT);
}

static void start_loop(void)
{
    self.runs = 1;
    if (uv_thread_create(&self.thread, run_loop, NULL) != 0)
        fail("libuv: there is no thread");
}

static void close_loop(void)
{
    uv_async_send(&self.wake);
    uv_thread_join(&self.thread);
}

const struct side libuv_side = {"libuv", 1, open_loop, file_tasks, start_loop, close_loop};
