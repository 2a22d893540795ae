/* SPDX-License-Identifier: MIT
 *
 * tickwheel top: shows the load of a scheduler, a server or a file of tasks. A feed reads it (feed.h), and a
 * frame lays it out (frame.h). This file chooses between one frame, JSON and the live view (top_view.h).
 */
#include "clock.h"
#include "command.h"
#include "feed.h"
#include "frame.h"
#include "top_json.h"
#include "top_options.h"
#include "top_view.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ONCE_COLS = 80 };

static int fail(const char *error)
{
    complain("tickwheel top: %s", error);
    return COMMAND_WRONG;
}

static bool read_into(struct feed *feed, struct history *history)
{
    struct reading reading;
    char error[FEED_ERROR];
    bool good = feed_read(feed, &reading, error);
    if (good)
        history_add(history, &reading);
    else
        fail(error);
    return good;
}

static bool print_frame(const struct history *history, bool ascii)
{
    struct sheet sheet;
    if (!sheet_init(&sheet, frame_rows(history, ONCE_COLS), frame_cols(history, ONCE_COLS), ascii))
        return false;
    frame_draw(&sheet, history, ONCE_COLS, "", "");
    sheet_print(&sheet, stdout);
    sheet_fini(&sheet);
    return true;
}

/* Shows one frame of two readings, an interval apart. Two are needed for the rates. */
static int show_once(const struct top_options *options, struct feed *feed, struct history *history)
{
    sleep_ns(options->interval_ns);
    if (!read_into(feed, history))
        return COMMAND_WRONG;
    bool good = options->json ? top_json(history, stdout) : print_frame(history, options->ascii);
    return good ? COMMAND_GOOD : fail("no memory");
}

/* Returns NULL after it has printed an error. */
static struct feed *make_feed(const struct top_options *options)
{
    if (options->store != NULL)
        return command_top_store(options);
    struct feed *feed = options->stats != NULL ? feed_sched(options) : feed_redis(options);
    if (feed == NULL)
        fail("no memory");
    return feed;
}

static bool has_terminal(void)
{
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        return true;
    complain("tickwheel top: the live view needs a terminal for input and output; use --once or --json");
    return false;
}

int command_top(int argc, char **argv)
{
    static struct history history;
    struct top_options options;
    int status = top_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_IGN); /* a write to a closed connection must return an error */
    setlocale(LC_CTYPE, "");
    options.ascii |= strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    bool live = !options.once && !options.json;
    if (live && !has_terminal())
        return COMMAND_INPUT;
    struct feed *feed = make_feed(&options);
    if (feed == NULL)
        return COMMAND_WRONG;
    bool good = read_into(feed, &history);
    if (good && live)
        return top_view(&options, feed, &history);
    status = good ? show_once(&options, feed, &history) : COMMAND_WRONG;
    feed_free(feed);
    return status;
}
