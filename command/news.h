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

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first, but for `command` and `path`. One thread at a time tells of tasks, and one of the file. */
struct news {
    const char *command, *path;
    struct {
        uint64_t until_ns; /* the end of a minute */
        uint64_t lines, untold;
    } tasks;
    struct {
        bool broken, told, ended; /* told: the trouble is on standard error */
        uint64_t since_ns;        /* Unix time */
        uint64_t mended_ns, next_ns;
        unsigned step;
    } file;
};

/* Tells of a task: at most ten in a minute. */
void news_task(struct news *news, const char *text);

/* Says how many tasks were not told. */
void news_end(struct news *news);

/* Returns how a service ends at an error of its file; NULL: it tries again. A damaged file does not mend
 * itself, and one that was replaced does not come back. */
const char *news_ends(int error);

/* Takes each error that the file gives, and 0 when it can be used again. The first error is told at once and,
 * while it lasts, again after a minute, after ten, and each hour. An error within a minute after the end of
 * another one is told when it has lasted for a minute. `ends`: as from news_ends(). */
void news_file(struct news *news, int error, const char *message, const char *ends);

#endif
