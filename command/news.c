/* SPDX-License-Identifier: MIT */
#include "news.h"

#include "command.h"
#include "printable.h"
#include "screen.h"
#include "task_line.h"

#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINES = 10 };
static const uint64_t SECOND_NS = 1000000000, MINUTE_NS = 60 * UINT64_C(1000000000);

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

/* The text holds bytes of queues, ids and commands, which a terminal must not obey. */
static void print_line(const struct news *news, const char *text)
{
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return;
    printable_write(text, strlen(text), false, SIZE_MAX, out);
    if (fclose(out) == 0) {
        screen_hide();
        complain("%s: %s", news->command, line);
    }
    free(line);
}

void news_end(struct news *news)
{
    if (news->tasks.untold > 0 && screen_can_tell()) {
        screen_hide();
        complain("%s: %" PRIu64 " more task%s failed or died", news->command, news->tasks.untold,
                 news->tasks.untold == 1 ? " has" : "s have");
    }
    news->tasks.untold = 0;
}

void news_task(struct news *news, const char *text)
{
    uint64_t now_ns = read_clock(CLOCK_MONOTONIC);
    if (now_ns >= news->tasks.until_ns) {
        news_end(news);
        news->tasks.until_ns = now_ns + MINUTE_NS;
        news->tasks.lines = 0;
    }
    if (news->tasks.lines < LINES && screen_can_tell()) {
        news->tasks.lines++;
        print_line(news, text);
    } else {
        news->tasks.untold++;
    }
}

/* ---- the file -------------------------------------------------------------------------------------------- */

static void print_trouble(const struct news *news, const char *message, const char *then)
{
    char since[TIME_SIZE];
    time_print(instant_of_ms(news->file.since_ns / 1000000), since);
    screen_hide();
    if (news->file.told)
        complain("%s: %s: broken since %s, still: %s; %s", news->command, news->path, since, message, then);
    else
        complain("%s: %s: %s; %s", news->command, news->path, message, then);
}

static void begin_trouble(struct news *news, uint64_t now_ns)
{
    bool calm = news->file.mended_ns == 0 || now_ns - news->file.mended_ns >= MINUTE_NS;
    news->file.broken = true;
    news->file.told = false;
    news->file.since_ns = read_clock(CLOCK_REALTIME);
    news->file.next_ns = calm ? now_ns : now_ns + MINUTE_NS;
    news->file.step = 0;
}

static void end_trouble(struct news *news, uint64_t now_ns)
{
    char since[TIME_SIZE];
    if (news->file.told && screen_can_tell()) {
        time_print(instant_of_ms(news->file.since_ns / 1000000), since);
        screen_hide();
        complain("%s: %s: mended; it was broken since %s", news->command, news->path, since);
    }
    news->file.broken = false;
    news->file.mended_ns = now_ns;
}

const char *news_ends(int error)
{
    if (error == TW_EREPLACED)
        return "stopped; start it again";
    return error == TW_ECORRUPT ? "stopped" : NULL;
}

void news_file(struct news *news, int error, const char *message, const char *ends)
{
    static const unsigned MINUTES[] = {1, 10, 60};
    uint64_t now_ns = read_clock(CLOCK_MONOTONIC);
    if (error == 0) {
        end_trouble(news, now_ns);
        return;
    }
    if (!news->file.broken)
        begin_trouble(news, now_ns);
    bool over = ends != NULL && !news->file.ended;
    if ((!over && now_ns < news->file.next_ns) || !screen_can_tell())
        return;
    print_trouble(news, message, ends != NULL ? ends : "trying again");
    news->file.told = true;
    news->file.ended |= over;
    news->file.next_ns = now_ns + MINUTES[news->file.step] * MINUTE_NS;
    news->file.step += news->file.step < 2;
}
