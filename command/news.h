/* SPDX-License-Identifier: MIT
 *
 * The news of a service on standard error, in few lines: which tasks fail and die, and how its file is. While
 * nobody reads standard error, there are none: a service does not wait for a reader.
 *
 *     tickwheel run: queue 'mails', id 'order:42': dead after 3 attempts: exit status 1
 *     tickwheel run: shop.db: disk I/O error; trying again
 *     tickwheel run: shop.db: broken since 2026-12-01T09:00:00.000Z, still: disk I/O error; trying again
 *     tickwheel run: shop.db: mended; it was broken since 2026-12-01T09:00:00.000Z
 */
#ifndef COMMAND_NEWS_H
#define COMMAND_NEWS_H

#include <tickwheel/store.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first, but for `command`, `path` and `lock`. Threads: any. */
struct news {
    const char *command, *path;
    pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER */
    struct {
        uint64_t until_ns; /* the end of a minute */
        uint64_t lines, untold;
    } tasks;
    struct {
        bool broken, told, ended;    /* told: the trouble is on standard error; ended: so is the end */
        uint64_t since_ns;           /* Unix time */
        uint64_t begun_ns;           /* of the monotonic clock, as the next two */
        uint64_t told_ns, mended_ns; /* 0: never */
        uint64_t kinds;              /* a bit for each error that was told */
        unsigned step;               /* how long the next line waits */
        int error;                   /* the last one */
        const char *ends;            /* how the service ends; NULL: it does not */
        char reason[TW_STORE_MESSAGE_SIZE];
    } file;
};

/* Tells of a task: at most ten in a minute. */
void news_task(struct news *news, const char *text);

/* How long a service waits between two looks at most. */
enum { NEWS_MS = 60000 };

/* Looks at the time: says how many tasks were not told, if a minute is over, and tells a trouble of the file
 * whose time has come, for the file may give no further error. */
void news_look(struct news *news);

/* How the file is at the end. The tasks of a damaged one cannot be counted. */
enum news_state { NEWS_GOOD, NEWS_BROKEN, NEWS_DAMAGED };

/* Says how many tasks were not told, and that the file is broken still, unless it has said that the service
 * ends by this. */
enum news_state news_end(struct news *news);

/* Takes each error that the file gives, and 0 when it can be used again. The first error is told at once and,
 * while it lasts, again after a minute, after ten more, and each hour. A trouble that comes again within a
 * minute after the end of the last one is told when it has lasted a minute, and then as above: by its next
 * error or its end, or by the next look. Shorter ones are told as seldom as one that lasts. An error of another
 * kind is told a minute after the last line. So there are two lines a minute at most: a trouble, and its end.
 * `ends` says how the service ends by the error; NULL: it tries again. */
void news_file(struct news *news, int error, const char *message, const char *ends);

/* Takes an error of a run of tasks, which is news of the file or of one task. A damaged file ends the service,
 * unless somebody `mends` it, and so does a file that was replaced. Returns whether the service ends. */
bool news_error(struct news *news, int error, const char *message, bool mends);

#endif
