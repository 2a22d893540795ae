/* SPDX-License-Identifier: MIT */
#include "seen.h"

#include "heard.h"
#include "tests/support/fuzz.h"
#include "top/top_json.h"

#include <jansson.h>
#include <string.h>

/* ---- the ways -------------------------------------------------------------------------------------------- */

static void show_json(const struct history *history)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fuzz_require(out != NULL && top_json(history, out), "there is no memory");
    fclose(out);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    fuzz_require(root != NULL && heard_lines(text, size) == 1, "a reading in JSON is not a line of JSON");
    heard_require_clean(text, size);
    json_decref(root);
    free(text);
}

static void show_frame(const struct history *history, int rows, int cols, bool ascii)
{
    struct sheet sheet;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fuzz_require(out != NULL && sheet_init(&sheet, rows, cols, ascii), "there is no memory");
    frame_draw(&sheet, history, cols < 80 ? cols : 80, "", "q quit");
    sheet_print(&sheet, out);
    fclose(out);
    fuzz_require(heard_lines(text, size) <= (size_t)rows, "a frame has more rows than its sheet");
    heard_require_clean(text, size);
    sheet_fini(&sheet);
    free(text);
}

static void show(const struct history *history)
{
    show_json(history);
    show_frame(history, frame_rows(history, 80), 80, true);
    show_frame(history, 12, 43, false);
    show_frame(history, 60, 200, false);
}

/* ---- readings -------------------------------------------------------------------------------------------- */

static void require_terminated(const char *text, size_t room)
{
    fuzz_require(memchr(text, '\0', room) != NULL, "a text of a reading does not end");
}

static void check_reading(const struct reading *reading)
{
    require_terminated(reading->address, sizeof reading->address);
    require_terminated(reading->version, sizeof reading->version);
    require_terminated(reading->state, sizeof reading->state);
    require_terminated(reading->durability, sizeof reading->durability);
    require_terminated(reading->warning, sizeof reading->warning);
    require_terminated(reading->deliver, sizeof reading->deliver);
    fuzz_require(reading->queues <= READING_QUEUES && reading->pauses <= READING_QUEUES,
                 "a reading has too many queues");
    for (size_t i = 0; i < reading->queues; i++)
        require_terminated(reading->seen[i].name, sizeof reading->seen[i].name);
    for (size_t i = 0; i < reading->pauses; i++)
        require_terminated(reading->paused[i].name, sizeof reading->paused[i].name);
}

static void check_error(const char error[FEED_ERROR])
{
    require_terminated(error, FEED_ERROR);
    fuzz_require(*error != '\0' && strchr(error, '\n') == NULL, "an error is not one line");
    heard_require_clean(error, strlen(error));
}

void seen_read(struct feed *feed, int times)
{
    static struct history history;
    static struct reading reading;
    memset(&history, 0, sizeof history);
    for (; times > 0; times--) {
        char error[FEED_ERROR] = "";
        if (!feed_read(feed, &reading, error)) {
            check_error(error);
            continue;
        }
        check_reading(&reading);
        history_add(&history, &reading);
        show(&history);
    }
    feed_free(feed);
}
