/* SPDX-License-Identifier: MIT
 *
 * The news of a service. The clocks and the room on standard error are the test's.
 */
#include "news.h"

#include "screen.h"

#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MINUTE = 60, HOUR = 3600 };

static struct {
    uint64_t now_s;
    bool full;
    char *text;
    size_t size;
    FILE *errors, *before;
} seen;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __wrap_screen_can_tell(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){(time_t)seen.now_s, 0};
    return 0;
}

bool __wrap_screen_can_tell(void)
{
    return !seen.full;
}

static struct news begin(void)
{
    free(seen.text);
    seen.text = NULL;
    seen.now_s = 1000;
    seen.full = false;
    return (struct news){.command = "run", .path = "s.db", .lock = PTHREAD_MUTEX_INITIALIZER};
}

static void listen(void)
{
    free(seen.text);
    seen.text = NULL;
    seen.errors = open_memstream(&seen.text, &seen.size);
    assert_non_null(seen.errors);
    seen.before = stderr;
    stderr = seen.errors;
}

static const char *heard(void)
{
    stderr = seen.before;
    assert_int_equal(fclose(seen.errors), 0);
    return seen.text;
}

/* Tells of the file, and returns the text on standard error. */
static const char *file(struct news *news, int error, const char *message, const char *ends)
{
    listen();
    news_file(news, error, message, ends);
    return heard();
}

static const char *end(struct news *news, enum news_state expected)
{
    listen();
    assert_int_equal(news_end(news), expected);
    return heard();
}

/* ---- the file -------------------------------------------------------------------------------------------- */

static void a_trouble_is_told_more_and_more_rarely(void **state)
{
    static const uint64_t AT[] = {0, MINUTE, 11 * MINUTE, 71 * MINUTE, 131 * MINUTE};
    struct news news = begin();
    size_t told = 0;
    (void)state;
    for (uint64_t s = 0; s <= 131 * MINUTE; s++, seen.now_s++)
        if (*file(&news, TW_EIO, "broken", NULL) != '\0')
            assert_int_equal(s, AT[told++]);
    assert_int_equal(told, 5);
    assert_string_equal(file(&news, 0, "", NULL),
                        "run: s.db: mended; it was broken since 1970-01-01T00:16:40.000Z\n");
}

/* A past bug: after the first line there was none for ever. */
static void a_short_trouble_that_comes_again_and_again_is_told(void **state)
{
    static const uint64_t AT[] = {0, MINUTE, 11 * MINUTE, 71 * MINUTE};
    struct news news = begin();
    size_t told = 0;
    (void)state;
    for (uint64_t s = 0; s <= 71 * MINUTE; s += 30, seen.now_s += 30) {
        bool tells = *file(&news, TW_EIO, "broken", NULL) != '\0';
        if (tells)
            assert_int_equal(s, AT[told++]);
        assert_int_equal(*file(&news, 0, "", NULL) != '\0', tells);
    }
    assert_int_equal(told, 4);
    seen.now_s += MINUTE;
    assert_string_equal(file(&news, TW_EIO, "broken", NULL), "run: s.db: broken; trying again\n");
}

/* A past bug: after the end of a trouble, the next one could be silent for an hour. */
static void a_trouble_that_lasts_is_told_within_a_minute(void **state)
{
    static const uint64_t AT[] = {MINUTE, 11 * MINUTE, 71 * MINUTE};
    struct news news = begin();
    size_t told = 0;
    (void)state;
    for (int s = 0; s <= 706; s++, seen.now_s++)
        file(&news, TW_EIO, "broken", NULL);
    assert_string_not_equal(file(&news, 0, "", NULL), "");
    seen.now_s += 34;
    for (uint64_t s = 0; s <= 71 * MINUTE; s++, seen.now_s++)
        if (*file(&news, TW_EIO, "broken", NULL) != '\0')
            assert_int_equal(s, AT[told++]);
    assert_int_equal(told, 3);
}

static const char *look(struct news *news)
{
    listen();
    news_look(news);
    return heard();
}

/* Begins a trouble half a minute after the end of one that has been told often, and so is told rarely now. */
static struct news begin_again(void)
{
    struct news news = begin();
    for (int s = 0; s <= 12 * MINUTE; s++, seen.now_s++)
        file(&news, TW_EIO, "broken", NULL);
    file(&news, 0, "", NULL);
    seen.now_s += 30;
    assert_string_equal(file(&news, TW_EIO, "broken again", NULL), "");
    return news;
}

/* A past bug: if a pause followed the error, so that no other error came, it was told at the end of the run. */
static void a_trouble_that_gives_one_error_is_told_by_a_look(void **state)
{
    struct news news = begin_again();
    (void)state;
    seen.now_s += MINUTE - 1;
    assert_string_equal(look(&news), "");
    seen.now_s++;
    seen.full = true;
    assert_string_equal(look(&news), "");
    seen.full = false;
    assert_string_equal(look(&news), "run: s.db: broken again; trying again\n");
    seen.now_s += HOUR;
    assert_string_equal(look(&news), "");
    assert_string_equal(file(&news, 0, "", NULL),
                        "run: s.db: mended; it was broken since 1970-01-01T00:29:11.000Z\n");
    assert_string_equal(look(&news), "");
}

/* The looks come too late for it. */
static void a_trouble_that_gives_one_error_is_told_by_its_end(void **state)
{
    struct news news = begin_again();
    (void)state;
    seen.now_s += MINUTE;
    assert_string_equal(file(&news, 0, "", NULL),
                        "run: s.db: broken again; trying again\n"
                        "run: s.db: mended; it was broken since 1970-01-01T00:29:11.000Z\n");
    news = begin_again();
    seen.now_s += MINUTE - 1;
    assert_string_equal(file(&news, 0, "", NULL), "");
}

/* Breaks and mends the file in turn, for these seconds each, for a day. Returns how many lines that gives. */
static size_t flip(uint64_t broken_s, uint64_t good_s)
{
    struct news news = begin();
    uint64_t end_s = seen.now_s + 24 * HOUR;
    size_t lines = 0;
    while (seen.now_s < end_s) {
        for (uint64_t s = 0; s < broken_s; s++, seen.now_s++)
            lines += *file(&news, TW_EIO, "broken", NULL) != '\0';
        lines += *file(&news, 0, "", NULL) != '\0';
        seen.now_s += good_s;
    }
    return lines;
}

static void a_file_that_breaks_again_and_again_gives_few_lines(void **state)
{
    (void)state;
    assert_in_range(flip(1, 1), 2 * 24, 2 * 27);
    assert_in_range(flip(30, 30), 2 * 24, 2 * 27);
    assert_in_range(flip(MINUTE + 1, 1), 24 * MINUTE, 2 * 24 * MINUTE);
    assert_in_range(flip(1, MINUTE), 24 * MINUTE, 2 * 24 * MINUTE);
}

static void the_wait_is_that_of_the_command(void **state)
{
    struct news news = begin();
    (void)state;
    assert_string_equal(file(&news, TW_EBUSY, "locked for 5000 ms, as long as busy_ms says", NULL),
                        "run: s.db: locked for 5000 ms, the wait of tickwheel; trying again\n");
    news = begin();
    assert_string_equal(file(&news, TW_EIO, "not locked, as long as busy_ms says so", NULL),
                        "run: s.db: not locked, as long as busy_ms says so; trying again\n");
}

/* A past bug: an hour passed before it was told. */
static void another_error_is_told_after_a_minute(void **state)
{
    struct news news = begin();
    (void)state;
    for (int i = 0; i < 12; i++, seen.now_s += MINUTE)
        file(&news, TW_EBUSY, "locked", NULL);
    seen.now_s -= 30; /* the last line was told half a minute ago */
    assert_string_equal(file(&news, TW_EIO, "broken", NULL), "");
    seen.now_s += 30;
    assert_non_null(strstr(file(&news, TW_EIO, "broken", NULL), "still: broken; trying again\n"));
    for (int i = 0; i < 30; i++, seen.now_s += MINUTE)
        assert_string_equal(file(&news, i % 2 ? TW_EIO : TW_EBUSY, "in turn", NULL), "");
}

/* A past bug: a service ended without a reason if nobody had read its messages at that moment. */
static void the_reason_of_an_end_waits_for_room(void **state)
{
    struct news news = begin();
    (void)state;
    seen.full = true;
    assert_string_equal(file(&news, TW_EREPLACED, "gone", "stopped"), "");
    assert_string_equal(end(&news, NEWS_BROKEN), "run: s.db: gone; stopped\n");
    assert_string_equal(end(&news, NEWS_BROKEN), "");
    news = begin();
    assert_string_equal(file(&news, TW_EREPLACED, "gone", "stopped"), "run: s.db: gone; stopped\n");
    assert_string_equal(file(&news, TW_EREPLACED, "gone", "stopped"), "");
    assert_string_equal(end(&news, NEWS_BROKEN), "");
}

/* Past bugs: a service ended with a broken file and did not say so, and it said "mended" after "stopped". */
static void a_service_says_how_it_leaves_its_file(void **state)
{
    struct news news = begin();
    (void)state;
    assert_string_equal(end(&news, NEWS_GOOD), "");
    news = begin();
    file(&news, TW_ECORRUPT, "malformed", NULL);
    assert_string_equal(end(&news, NEWS_DAMAGED),
                        "run: s.db: broken since 1970-01-01T00:16:40.000Z, still: malformed; stopped\n");
    news = begin();
    file(&news, TW_EIO, "broken", NULL);
    file(&news, 0, "", NULL);
    assert_string_equal(end(&news, NEWS_GOOD), "");
    news = begin();
    file(&news, TW_ECORRUPT, "malformed", "stopped");
    assert_string_equal(file(&news, 0, "", NULL), "");
}

/* Past bug: a message of SQLite names tables, and a hostile file made the terminal obey their names. */
static void a_terminal_does_not_obey_a_message(void **state)
{
    struct news news = begin();
    (void)state;
    assert_string_equal(file(&news, TW_ECORRUPT, "table \033]0;x\a\xc2\x9b is bad", NULL),
                        "run: s.db: table \\x1b]0;x\\x07\\xc2\\x9b is bad; trying again\n");
    listen();
    news_task(&news, "id '\033[2J'");
    assert_string_equal(heard(), "run: id '\\x1b[2J'\n");
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

/* Past bugs: the number of the others was told at the next death only, and forgotten without room. */
static void how_many_more_is_told_after_the_minute(void **state)
{
    struct news news = begin();
    size_t lines = 0;
    (void)state;
    listen();
    for (int i = 0; i < 1000; i++)
        news_task(&news, "a: dead");
    for (const char *at = heard(); (at = strstr(at, "run: a: dead\n")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 10);
    assert_string_equal(look(&news), "");
    seen.now_s += MINUTE;
    seen.full = true;
    assert_string_equal(look(&news), "");
    seen.full = false;
    assert_string_equal(look(&news), "run: 990 more tasks have failed or died, or are damaged\n");
    assert_string_equal(look(&news), "");
    assert_string_equal(end(&news, NEWS_GOOD), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trouble_is_told_more_and_more_rarely),
        cmocka_unit_test(a_short_trouble_that_comes_again_and_again_is_told),
        cmocka_unit_test(a_trouble_that_lasts_is_told_within_a_minute),
        cmocka_unit_test(a_trouble_that_gives_one_error_is_told_by_a_look),
        cmocka_unit_test(a_trouble_that_gives_one_error_is_told_by_its_end),
        cmocka_unit_test(a_file_that_breaks_again_and_again_gives_few_lines),
        cmocka_unit_test(the_wait_is_that_of_the_command),
        cmocka_unit_test(another_error_is_told_after_a_minute),
        cmocka_unit_test(the_reason_of_an_end_waits_for_room),
        cmocka_unit_test(a_service_says_how_it_leaves_its_file),
        cmocka_unit_test(a_terminal_does_not_obey_a_message),
        cmocka_unit_test(how_many_more_is_told_after_the_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
