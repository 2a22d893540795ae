/* SPDX-License-Identifier: MIT
 *
 * How the runner learns of commits on other connections. A commit writes to the log, waits for the disk, and
 * then publishes the end of the log in shared memory, of which no file event tells. So an event on the log is a
 * hint that comes too early, by the time of a sync, or of two: the first commit of a connection syncs the
 * folder too. After a hint the runner looks at once, and again at growing intervals: each is a quarter of the
 * time since the hint, and at most half a second. So it sees the commit too late by at most a quarter of its
 * syncs, and never by more than half a second. Example: the sync takes 8 ms. The runner looks after 0, 0.2,
 * 0.4, ..., 1, 1.25, ..., 6.8 and 8.5 ms, and sees the commit half a millisecond after its return. All this
 * holds for a runner that waits: one that is inside a commit of its own looks after that. A minute after the
 * hint the looks end: for a sync that takes longer there is the look every 30 seconds (see below). A hint
 * costs some 150 looks in that minute. A transaction that grew beyond SQLite's memory writes early, and writes
 * again when it commits.
 *
 * (Rejected: to end the looks when one has seen a commit. Two processes may have written to the log before the
 * hint was read, and only the first of them has committed.)
 *
 * A busy log costs little: a hint within two milliseconds of another one waits, and then one look serves both.
 *
 * The folder is watched too, because the file, its log or the lock may be removed or replaced: each event wakes
 * the runner. A look every 30 seconds finds commits for which there was no hint.
 * If the system reports no files at all, there is a look every 100 ms.
 */
#include "watch.h"

#include "open.h"

#include <base/time.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const uint64_t MS = 1000000;
static const uint64_t FIRST_STEP = 200000;              /* the first interval after a hint */
static const uint64_t LAST_STEP = 500000000;            /* the longest one */
static const uint64_t PATIENCE = UINT64_C(60000000000); /* after a hint: the commit may come until then */
static const uint64_t HOLD = 2000000;                   /* from hint to hint */
static const uint64_t SLOW = UINT64_C(30000000000);     /* without hints */
static const uint64_t BLIND = 100000000;                /* if there can be none */

enum { FOLDER_EVENTS = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF };

/* ---- beginning ------------------------------------------------------------------------------------------- */

/* Without a watch on the folder `files` becomes -1. */
static void watch_files(struct tw__store_watch *watch, const char *log)
{
    char folder[TW__STORE_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(log, '/') - log + 1), log);
    watch->files = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->files < 0)
        return;
    if (inotify_add_watch(watch->files, folder, FOLDER_EVENTS) < 0) {
        close(watch->files);
        watch->files = -1;
        return;
    }
    watch->log = inotify_add_watch(watch->files, log, IN_MODIFY);
}

/* SQLite's name of the file is its whole path. */
void tw__store_watch_begin(struct tw__store_watch *watch, struct tw__store_db *db)
{
    watch_files(watch, sqlite3_filename_wal(sqlite3_db_filename(db->db, "main")));
    watch->look_ns = tw__store_monotonic();
}

int tw__store_watch_init(struct tw__store_watch *watch)
{
    watch->files = -1;
    watch->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    watch->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    return watch->wake < 0 || watch->timer < 0 ? TW_ESYSTEM : 0;
}

static void close_one(int fd)
{
    if (fd >= 0)
        close(fd);
}

void tw__store_watch_fini(struct tw__store_watch *watch)
{
    close_one(watch->files);
    close_one(watch->wake);
    close_one(watch->timer);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

void tw__store_watch_wake(const struct tw__store_watch *watch)
{
    uint64_t one = 1;
    if (write(watch->wake, &one, sizeof one) < 0) { /* it is full: the runner is awake */
    }
}

/* The timer is set even if the time has passed: so a step of the clock is always reported. */
static void arm_timer(struct tw__store_watch *watch, uint64_t until_ms)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(until_ms / 1000), .tv_nsec = (long)(until_ms % 1000 * MS)}};
    if (until_ms == watch->armed_ms)
        return;
    watch->armed_ms = until_ms;
    if (timerfd_settime(watch->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) != 0)
        watch->stepped |= errno == ECANCELED; /* the clock was set since the last call; the timer is armed */
}

static void read_timer(struct tw__store_watch *watch)
{
    uint64_t count;
    watch->stepped |= read(watch->timer, &count, sizeof count) < 0 && errno == ECANCELED;
    watch->armed_ms = 0;
}

static void take_hint(struct tw__store_watch *watch, uint64_t now_ns)
{
    watch->busy = watch->hint_ns != 0 && now_ns - watch->hint_ns < 2 * HOLD;
    watch->hint_ns = now_ns;
    watch->hold_ns = now_ns + HOLD;
    watch->look_ns = now_ns;
}

static void read_files(struct tw__store_watch *watch, uint64_t now_ns)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t size = read(watch->files, events, sizeof events);
    for (ssize_t at = 0; at < size;) {
        const struct inotify_event *event = (const void *)&events[at];
        if (event->wd == watch->log || (event->mask & IN_Q_OVERFLOW))
            take_hint(watch, now_ns);
        at += (ssize_t)(sizeof *event + event->len);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void tw__store_watch_wait(struct tw__store_watch *watch, uint64_t until_ms, uint64_t until_ns, bool look)
{
    uint64_t now_ns = tw__store_monotonic(), count;
    bool hold = now_ns < watch->hold_ns;
    if (look)
        until_ns = earlier(until_ns, earlier(watch->look_ns, hold ? watch->hold_ns : UINT64_MAX));
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / TW__NS_PER_S),
                            .tv_nsec = (long)(wait_ns % TW__NS_PER_S)};
    struct pollfd on[] = {{.fd = watch->timer, .events = POLLIN},
                          {.fd = watch->wake, .events = POLLIN},
                          {.fd = hold || !look ? -1 : watch->files, .events = POLLIN}};
    arm_timer(watch, until_ms);
    if (ppoll(on, 3, &wait, NULL) <= 0)
        return;
    if (on[0].revents != 0)
        read_timer(watch);
    if (on[1].revents != 0 && read(watch->wake, &count, sizeof count) < 0) { /* nobody else reads it */
    }
    if (on[2].revents != 0)
        read_files(watch, tw__store_monotonic());
}

/* ---- looking --------------------------------------------------------------------------------------------- */

/* The time from one look to the next. */
static uint64_t interval(struct tw__store_watch *watch, uint64_t now_ns)
{
    uint64_t since = now_ns - watch->hint_ns, least = watch->busy ? HOLD : FIRST_STEP;
    if (watch->hint_ns == 0 || since >= PATIENCE) {
        watch->hint_ns = 0;
        return watch->files < 0 ? BLIND : SLOW;
    }
    uint64_t step = since / 4 < LAST_STEP ? since / 4 : LAST_STEP;
    return step > least ? step : least;
}

bool tw__store_watch_look(struct tw__store_watch *watch, bool *whole)
{
    uint64_t now_ns = tw__store_monotonic();
    if (watch->stepped)
        *whole = true;
    else if (now_ns < watch->look_ns)
        return false;
    watch->stepped = false;
    watch->look_ns = now_ns + interval(watch, now_ns);
    return true;
}
