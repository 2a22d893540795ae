/* SPDX-License-Identifier: MIT */
#include "news.h"

#include "clock.h"
#include "command.h"
#include "screen.h"
#include "store_file.h"
#include "task_line.h"

#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <stdio.h>

enum { LINES = 10 };
static const uint64_t MINUTE_NS = 60 * UINT64_C(1000000000);

/* ---- tasks ----------------------------------------------------------------------------------------------- */

static void tell_more(struct news *news)
{
    if (news->tasks.untold == 0 || !screen_can_tell())
        return;
    screen_hide();
    bool one = news->tasks.untold == 1;
    complain("%s: %" PRIu64 " more task%s failed or died, or %s damaged", news->command, news->tasks.untold,
             one ? " has" : "s have", one ? "is" : "are");
    news->tasks.untold = 0;
}

void news_task(struct news *news, const char *text)
{
    uint64_t now_ns = monotonic_ns();
    pthread_mutex_lock(&news->lock);
    if (now_ns >= news->tasks.until_ns) {
        tell_more(news);
        news->tasks.until_ns = now_ns + MINUTE_NS;
        news->tasks.lines = 0;
    }
    if (news->tasks.lines < LINES && screen_can_tell()) {
        news->tasks.lines++;
        screen_hide();
        complain("%s: %s", news->command, text);
    } else {
        news->tasks.untold++;
    }
    pthread_mutex_unlock(&news->lock);
}

/* ---- the file -------------------------------------------------------------------------------------------- */

static void print_trouble(const struct news *news, const char *then)
{
    char since[TIME_SIZE];
    time_print(instant_of_ms(news->file.since_ns / 1000000), since);
    screen_hide();
    if (news->file.told)
        complain("%s: %s: broken since %s, still: %s; %s", news->command, news->path, since, news->file.reason,
                 then);
    else
        complain("%s: %s: %s; %s", news->command, news->path, news->file.reason, then);
}

/* After a calm minute a trouble is told at once. Else it waits, as if the last one went on. */
static void begin_trouble(struct news *news, uint64_t now_ns)
{
    news->file.broken = true;
    news->file.told = false;
    news->file.since_ns = clock_ns(CLOCK_REALTIME);
    news->file.begun_ns = now_ns;
    if (news->file.mended_ns != 0 && now_ns - news->file.mended_ns < MINUTE_NS)
        return;
    news->file.told_ns = news->file.kinds = 0;
    news->file.step = 0;
}

/* Tells the trouble, if it is time. */
static void tell_trouble(struct news *news, uint64_t now_ns)
{
    static const unsigned MINUTES[] = {1, 10, 60};
    uint64_t kind = UINT64_C(1) << (-news->file.error % 64), last_ns = news->file.told_ns;
    bool other = (news->file.kinds & kind) == 0;
    uint64_t rest_ns = (other || news->file.step == 0 ? 1 : MINUTES[news->file.step - 1]) * MINUTE_NS;
    bool over = news->file.ends != NULL && !news->file.ended;
    bool lasts = !news->file.told && now_ns - news->file.begun_ns >= MINUTE_NS;
    if ((!over && !lasts && last_ns != 0 && now_ns - last_ns < rest_ns) || !screen_can_tell())
        return;
    if (lasts)
        news->file.step = 1;
    print_trouble(news, news->file.ends != NULL ? news->file.ends : "trying again");
    news->file.ended |= over;
    news->file.told = true;
    news->file.told_ns = now_ns;
    news->file.kinds |= kind;
    news->file.step += news->file.step < 3;
}

/* The file may give no further error: nothing is claimed in a pause, for example. */
static void tell_untold(struct news *news, uint64_t now_ns)
{
    if (news->file.broken && !news->file.told)
        tell_trouble(news, now_ns);
}

static void end_trouble(struct news *news, uint64_t now_ns)
{
    char since[TIME_SIZE];
    tell_untold(news, now_ns);
    if (news->file.told && !news->file.ended && screen_can_tell()) {
        time_print(instant_of_ms(news->file.since_ns / 1000000), since);
        screen_hide();
        complain("%s: %s: mended; it was broken since %s", news->command, news->path, since);
    }
    news->file.broken = false;
    news->file.ends = NULL;
    news->file.mended_ns = now_ns;
}

void news_file(struct news *news, int error, const char *message, const char *ends)
{
    uint64_t now_ns = monotonic_ns();
    pthread_mutex_lock(&news->lock);
    if (error == 0) {
        end_trouble(news, now_ns);
    } else {
        if (!news->file.broken)
            begin_trouble(news, now_ns);
        snprintf(news->file.reason, sizeof news->file.reason, "%s", message);
        store_file_name_wait(news->file.reason);
        news->file.error = error;
        news->file.ends = ends;
        tell_trouble(news, now_ns);
    }
    pthread_mutex_unlock(&news->lock);
}

void news_look(struct news *news)
{
    uint64_t now_ns = monotonic_ns();
    pthread_mutex_lock(&news->lock);
    if (now_ns >= news->tasks.until_ns)
        tell_more(news);
    tell_untold(news, now_ns);
    pthread_mutex_unlock(&news->lock);
}

bool news_error(struct news *news, int error, const char *message, bool mends)
{
    const char *ends = error == TW_EREPLACED            ? "stopped; start it again"
                       : error == TW_ECORRUPT && !mends ? "stopped"
                                                        : NULL;
    if (error == TW_EFAILED || error == TW_EDEAD || error == TW_EDAMAGED || error == TW_EINVAL)
        news_task(news, message);
    else
        news_file(news, error, message, ends);
    return ends != NULL;
}

enum news_state news_end(struct news *news)
{
    pthread_mutex_lock(&news->lock);
    tell_more(news);
    if (news->file.broken && !news->file.ended)
        print_trouble(news, news->file.ends != NULL ? news->file.ends : "stopped");
    news->file.ended = true;
    enum news_state state = !news->file.broken                ? NEWS_GOOD
                            : news->file.error == TW_ECORRUPT ? NEWS_DAMAGED
                                                              : NEWS_BROKEN;
    pthread_mutex_unlock(&news->lock);
    return state;
}
