/* SPDX-License-Identifier: MIT
 *
 * The addresses of servers: good ones with each part, and refused ones with the reason.
 */
#include "link/url.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A part that is NULL is empty; a password that is NULL is none; `text` NULL: as it was given. */
static const struct good {
    const char *given;
    enum url_transport transport;
    const char *host;
    int port, db;
    const char *user, *password, *text;
} GOOD[] = {
    {"redis://h", URL_TCP, "h", 6379, 0, NULL, NULL, NULL},
    {"redis://h/", URL_TCP, "h", 6379, 0, NULL, NULL, NULL},
    {"redis://", URL_TCP, "127.0.0.1", 6379, 0, NULL, NULL, NULL},
    {"redis:///4", URL_TCP, "127.0.0.1", 6379, 4, NULL, NULL, NULL},
    {"redis://:7/4", URL_TCP, "127.0.0.1", 7, 4, NULL, NULL, NULL},
    {"redis://h:1", URL_TCP, "h", 1, 0, NULL, NULL, NULL},
    {"redis://h:65535/2147483647", URL_TCP, "h", 65535, 2147483647, NULL, NULL, NULL},
    {"redis://h?db=3", URL_TCP, "h", 6379, 3, NULL, NULL, NULL},
    {"redis://h/?db=3", URL_TCP, "h", 6379, 3, NULL, NULL, NULL},
    {"REDIS://A.b-c_d.example:7/1", URL_TCP, "A.b-c_d.example", 7, 1, NULL, NULL, NULL},
    {"redis://10.0.0.1:7", URL_TCP, "10.0.0.1", 7, 0, NULL, NULL, NULL},
    {"redis://[::1]", URL_TCP, "::1", 6379, 0, NULL, NULL, NULL},
    {"redis://[2001:db8::7]:7/2", URL_TCP, "2001:db8::7", 7, 2, NULL, NULL, NULL},
    {"redis://[fe80::1%25eth0]:7", URL_TCP, "fe80::1%eth0", 7, 0, NULL, NULL, NULL},
    {"redis://u@h", URL_TCP, "h", 6379, 0, "u", NULL, NULL},
    {"redis://u:p@h:7/1", URL_TCP, "h", 7, 1, "u", "p", "redis://u:***@h:7/1"},
    {"redis://:p@h", URL_TCP, "h", 6379, 0, NULL, "p", "redis://:***@h"},
    {"redis://u:@h", URL_TCP, "h", 6379, 0, "u", "", "redis://u:***@h"},
    {"redis://:@h", URL_TCP, "h", 6379, 0, NULL, NULL, NULL},
    {"redis://@h", URL_TCP, "h", 6379, 0, NULL, NULL, NULL},
    {"redis://u%40x:%3a%2F%25%20@h", URL_TCP, "h", 6379, 0, "u@x", ":/% ", "redis://u%40x:***@h"},
    {"redis://u:a:b@c@h", URL_TCP, "h", 6379, 0, "u", "a:b@c", "redis://u:***@h"},
    {"redis://u:p@[::1]:7", URL_TCP, "::1", 7, 0, "u", "p", "redis://u:***@[::1]:7"},
    {"redis://u:\xc3\xa9\x1b@h", URL_TCP, "h", 6379, 0, "u", "\xc3\xa9\x1b", "redis://u:***@h"},
    {"redis://\xc3\xa9@h", URL_TCP, "h", 6379, 0, "\xc3\xa9", NULL, "redis://\?\?@h"},
    {"rediss://h", URL_TCP, "h", 6379, 0, NULL, NULL, NULL},
    {"Rediss://u:p@h:7/1", URL_TCP, "h", 7, 1, "u", "p", "Rediss://u:***@h:7/1"},
    {"redis+sentinel://h/s", URL_SENTINEL, "h", 26379, 0, NULL, NULL, NULL},
    {"Redis+Sentinel://:7,b:8/s/3", URL_SENTINEL, "127.0.0.1", 7, 3, NULL, NULL, NULL},
    {"redis+sentinel://[::1]:7,b/s?db=3", URL_SENTINEL, "::1", 7, 3, NULL, NULL, NULL},
    {"rediss+Sentinel://h/s", URL_SENTINEL, "h", 26379, 0, NULL, NULL, NULL},
    {"redis+sentinel://u:p,q@a,b:8/s/3", URL_SENTINEL, "a", 26379, 3, "u", "p,q",
     "redis+sentinel://u:***@a,b:8/s/3"},
    {"unix:s", URL_UNIX, "s", 0, 0, NULL, NULL, NULL},
    {"unix:/a/b", URL_UNIX, "/a/b", 0, 0, NULL, NULL, NULL},
    {"unix:///a/b", URL_UNIX, "/a/b", 0, 0, NULL, NULL, NULL},
    {"unix:/a/b?db=9", URL_UNIX, "/a/b", 0, 9, NULL, NULL, NULL},
    {"unix:/a:1@b/c", URL_UNIX, "/a:1@b/c", 0, 0, NULL, NULL, NULL},
    {"unix:a@b/c", URL_UNIX, "a@b/c", 0, 0, NULL, NULL, NULL},
    {"unix:/%3f%25", URL_UNIX, "/?%", 0, 0, NULL, NULL, NULL},
    {"unix:u:p@/a", URL_UNIX, "/a", 0, 0, "u", "p", "unix:u:***@/a"},
    {"unix://u:p@/a?db=2", URL_UNIX, "/a", 0, 2, "u", "p", "unix://u:***@/a?db=2"},
    {"unix://:p@/a", URL_UNIX, "/a", 0, 0, NULL, "p", "unix://:***@/a"},
    {"unix://u@/a", URL_UNIX, "/a", 0, 0, "u", NULL, NULL},
    {"h", URL_TCP, "h", 7379, 0, NULL, NULL, NULL},
    {"h:7", URL_TCP, "h", 7, 0, NULL, NULL, NULL},
    {":7", URL_TCP, "127.0.0.1", 7, 0, NULL, NULL, NULL},
    {"[::1]", URL_TCP, "::1", 7379, 0, NULL, NULL, NULL},
    {"[::1]:7", URL_TCP, "::1", 7, 0, NULL, NULL, NULL},
    {"[fe80::1%eth0]:7", URL_TCP, "fe80::1%eth0", 7, 0, NULL, NULL, NULL},
};

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void each_part_of_a_good_address_is_found(void **state)
{
    char error[URL_ERROR];
    (void)state;
    for (const struct good *row = GOOD; row < GOOD + sizeof GOOD / sizeof *GOOD; row++) {
        struct url url;
        if (!url_parse(row->given, &url, error))
            fail_msg("%s: %s", row->given, error);
        assert_int_equal(url.transport, row->transport);
        assert_int_equal(url.tls, strncasecmp(row->given, "rediss", 6) == 0);
        assert_string_equal(url.host, row->host);
        assert_int_equal(url.port, row->port);
        assert_int_equal(url.db, row->db);
        assert_int_equal(url.has_db, row->db > 0);
        assert_string_equal(url.user, or_empty(row->user));
        assert_int_equal(url.has_password, row->password != NULL);
        assert_string_equal(url.password, or_empty(row->password));
        assert_string_equal(url.text, row->text != NULL ? row->text : row->given);
    }
}

static const char PORT[] = "redis://HOST:PORT/DB, with a port from 1 to 65535",
                  DB[] = "one database, from 0 to 2147483647";
static const char PLAIN[] = "HOST:PORT, with a port from 1 to 65535, redis://HOST:PORT, rediss://HOST:PORT, "
                            "redis+sentinel://HOST:PORT/NAME or unix:PATH";
static const char SERVICE[] = "redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB, with ports from 1 to 65535";
static const char SENTINELS[] = "1 to 8 sentinels";
static const char PERCENT[] = "two hexadecimal digits behind each %, and no %00";

/* `shown` NULL: as it was given. */
static const struct bad {
    const char *given, *expected, *shown;
} BAD[] = {
    {"", PLAIN, NULL},
    {"redis:/h", PLAIN, NULL},
    {"gopher://h", PLAIN, NULL},
    {"gopher://u:secret@h", PLAIN, "gopher://u:***@h"},
    {"redis:u:secret@h", PLAIN, "redis:***@h"},
    {"u:secret@h:7", PLAIN, "u:***@h:7"},
    {"h:0", PLAIN, NULL},
    {"h:65536", PLAIN, NULL},
    {"h:", PLAIN, NULL},
    {"h:7/0", PLAIN, NULL},
    {"::1", PLAIN, NULL},
    {"[::1", PLAIN, NULL},
    {"[]", PLAIN, NULL},
    {"[::1]7", PLAIN, NULL},
    {"[localhost]:7", PLAIN, NULL},
    {"a b:7", PLAIN, NULL},
    {"a%41:7", PLAIN, NULL},
    {"a\x1b[31m:7", PLAIN, "a?[31m:7"},
    {"redis://h:0", PORT, NULL},
    {"redis://h:-1", PORT, "redis://h:***"},
    {"redis://h:+7", PORT, "redis://h:***"},
    {"redis://h:65536", PORT, NULL},
    {"redis://h:99999999999999999999999999", PORT, NULL},
    {"redis://h:", PORT, NULL},
    {"redis://h:x", PORT, "redis://h:***"},
    {"redis://u:secret@h:x", PORT, "redis://u:***@h:x"},
    {"redis://:secret", PORT, "redis://:***"},
    {"redis://u:7secret/1", PORT, "redis://u:***"},
    {"rediss://u:sec:ret?x", PORT, "rediss://u:***"},
    {"redis://h:7#1", PORT, NULL},
    {"redis://u:sec/ret@h:7", PORT, "redis://u:***@h:7"},
    {"redis://u:sec?ret@h:7", PORT, "redis://u:***@h:7"},
    {"redis://::1", PORT, "redis://:***"},
    {"redis://[::1", PORT, NULL},
    {"redis://[h]", PORT, NULL},
    {"redis://[]:7", PORT, NULL},
    {"redis://[::1]x", PORT, NULL},
    {"redis://a%20b", PORT, NULL},
    {"redis://a#b", PORT, NULL},
    {"redis://h/x", DB, NULL},
    {"redis://h/-1", DB, NULL},
    {"redis://h/1/", DB, NULL},
    {"redis://h/2147483648", DB, NULL},
    {"redis://h/1?db=1", DB, NULL},
    {"redis://h/?db=", DB, NULL},
    {"redis://h/?db=1&db=2", DB, NULL},
    {"redis://h/1?", "no other parameter than ?db=DB", NULL},
    {"redis://h?timeout=5", "no other parameter than ?db=DB", NULL},
    {"redis://u:one@h?x=1&password=two", "no other parameter than ?db=DB", "redis://u:***"},
    {"redis://h?password=two", "no other parameter than ?db=DB", "redis://h?password=***"},
    {"redis://u:secret%@h", PERCENT, "redis://u:***@h"},
    {"redis://u%4:p@h", PERCENT, "redis://u%4:***@h"},
    {"redis://u%4g@h", PERCENT, NULL},
    {"redis://u:%00@h", PERCENT, "redis://u:***@h"},
    {"redis://%00", PERCENT, NULL},
    {"redis+sentinel://", SENTINELS, NULL},
    {"redis+sentinel:///s", SENTINELS, NULL},
    {"redis+sentinel://a,/s", SENTINELS, NULL},
    {"redis+sentinel://a,,b/s", SENTINELS, NULL},
    {"redis+sentinel://1,2,3,4,5,6,7,8,9/s", SENTINELS, NULL},
    {"redis+sentinel://a", SERVICE, NULL},
    {"redis+sentinel://a/", SERVICE, NULL},
    {"redis+sentinel://a//3", SERVICE, NULL},
    {"redis+sentinel://a?db=3", SERVICE, NULL},
    {"redis+sentinel://a/b c", SERVICE, NULL},
    {"redis+sentinel://a,b:0/s", SERVICE, NULL},
    {"redis+sentinel://a:1,b:0/s", SERVICE, "redis+sentinel://a:***"},
    {"redis+sentinel://u:secret@a,b:x/s", SERVICE, "redis+sentinel://u:***@a,b:x/s"},
    {"redis+sentinel://a/s/x", DB, NULL},
    {"redis+sentinel://a/s/1?db=1", DB, NULL},
    {"redis+sentinel://a/s?x=1", "no other parameter than ?db=DB", NULL},
    {"unix://a/b", "a path that begins with a slash behind unix://", NULL},
    {"unix://", "a path that begins with a slash behind unix://", NULL},
    {"unix:/%", PERCENT, NULL},
    {"unix:/a:b?x", "no other parameter than ?db=DB", NULL},
    {"unix:/a?x", "no other parameter than ?db=DB", NULL},
    {"unix:/a?db=x", DB, NULL},
};

static void each_sentinel_and_the_service_are_found(void **state)
{
    struct url url;
    char error[URL_ERROR];
    (void)state;
    assert_true(url_parse("redis+sentinel://u@a:1,[::1]:2,1,2,3,4,5,c/a%2Eb/3", &url, error));
    assert_int_equal(url.sentinels, URL_SENTINELS);
    assert_string_equal(url.service, "a.b");
    assert_string_equal(url.sentinel[0].host, "a");
    assert_int_equal(url.sentinel[0].port, 1);
    assert_string_equal(url.sentinel[1].host, "::1");
    assert_int_equal(url.sentinel[1].port, 2);
    assert_string_equal(url.sentinel[7].host, "c");
    assert_int_equal(url.sentinel[7].port, 26379);
}

static void each_bad_address_is_refused_with_its_reason(void **state)
{
    (void)state;
    for (const struct bad *row = BAD; row < BAD + sizeof BAD / sizeof *BAD; row++) {
        char error[URL_ERROR] = "", expected[URL_ERROR];
        struct url url, before;
        memset(&url, 7, sizeof url);
        memcpy(&before, &url, sizeof url);
        if (url_parse(row->given, &url, error))
            fail_msg("%s: it was taken", row->given);
        snprintf(expected, sizeof expected, "expected %s, found \"%s\"", row->expected,
                 row->shown != NULL ? row->shown : row->given);
        assert_string_equal(error, expected);
        assert_memory_equal(&url, &before, sizeof url);
    }
}

/* Writes `before`, then `count` times the letter x, then `after`. */
static const char *long_text(const char *before, size_t count, const char *after)
{
    static char text[8192];
    size_t at = strlen(before);
    strcpy(text, before);
    memset(text + at, 'x', count);
    strcpy(text + at + count, after);
    return text;
}

static void a_part_may_be_as_long_as_its_limit(void **state)
{
    static const struct {
        const char *before, *after;
        size_t limit;
        const char *error;
    } rows[] = {
        {"redis://", ":7", 255, "a host of at most 255 bytes"},
        {"", ":7", 255, "a host of at most 255 bytes"},
        {"redis://", ":p@h", 255, "a user of as many"},
        {"redis://u:", "@h", 4096, "a password of at most 4096"},
        {"unix://:", "@/s", 4096, "a password of at most 4096"},
        {"unix:", "", 107, "expected a path of 1 to 107 bytes, found 108"},
        {"unix:", "?db=1", 107, "expected a path of 1 to 107 bytes, found 108"},
    };
    char error[URL_ERROR];
    struct url url;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!url_parse(long_text(rows[i].before, rows[i].limit, rows[i].after), &url, error))
            fail_msg("row %zu: %s", i, error);
        assert_true(strlen(url.host) == rows[i].limit || strlen(url.user) == rows[i].limit ||
                    strlen(url.password) == rows[i].limit);
        assert_false(url_parse(long_text(rows[i].before, rows[i].limit + 1, rows[i].after), &url, error));
        if (strstr(error, rows[i].error) == NULL)
            fail_msg("row %zu: %s", i, error);
    }
    assert_false(url_parse("unix:", &url, error));
    assert_string_equal(error, "expected a path of 1 to 107 bytes, found 0");
    assert_false(url_parse(long_text("", 8000, ""), &url, error)); /* the error is cut */
    assert_false(url_parse(long_text("redis://h?", 8000, ""), &url, error));
    assert_true(strlen(error) < URL_ERROR);
}

/* ---- random addresses ------------------------------------------------------------------------------------ */

/* Writes a random text, encoded. All bytes but 0 may be in it. */
static void put_random(struct rng *rng, char *plain, char *encoded, size_t most)
{
    size_t size = rng_below(rng, most + 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(1 + rng_below(rng, 255));
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        *plain++ = (char)byte;
        encoded += letter ? sprintf(encoded, "%c", byte)
                          : sprintf(encoded, rng_below(rng, 2) != 0 ? "%%%02x" : "%%%02X", byte);
    }
    *plain = *encoded = '\0';
}

static void what_was_encoded_is_decoded(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned i = 0; i < run_scaled(100000); i++) {
        char user[64], user_coded[256], password[64], password_coded[256], given[1024], error[URL_ERROR];
        struct url url;
        int port = (int)rng_below(&rng, 65535) + 1, db = (int)rng_below(&rng, 100);
        put_random(&rng, user, user_coded, 40);
        put_random(&rng, password, password_coded, 40);
        snprintf(given, sizeof given, "rediss://%s:%s@h.example:%d/%d", user_coded, password_coded, port, db);
        if (!url_parse(given, &url, error))
            fail_msg("%s: %s", given, error);
        assert_string_equal(url.user, user);
        assert_string_equal(url.password, password);
        assert_string_equal(url.host, "h.example");
        assert_int_equal(url.port, port);
        assert_int_equal(url.db, db);
        assert_int_equal(url.has_password, *user != '\0' || *password != '\0');
    }
}

/* Checks the promises about any text: each part ends, and nothing shown could obey a terminal. */
static void check(const char *given)
{
    char error[URL_ERROR];
    struct url url;
    bool good = url_parse(given, &url, error);
    const char *shown = good ? url.text : error;
    for (const char *p = shown; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            fail_msg("\"%s\" is shown with the byte %d", given, *p);
    if (good) {
        assert_true(memchr(url.host, '\0', sizeof url.host) != NULL && *url.host != '\0');
        assert_true(memchr(url.user, '\0', sizeof url.user) != NULL);
        assert_true(memchr(url.password, '\0', sizeof url.password) != NULL);
        assert_true(url.transport == URL_UNIX ? url.port == 0 && strlen(url.host) < 108
                                              : url.port > 0 && url.port < 65536);
        assert_true(url.db >= 0 && (url.has_db || url.db == 0));
    } else {
        assert_memory_equal(error, "expected ", 9);
    }
    bool path = good && url.transport == URL_UNIX && !url.has_password; /* which may look like anything */
    if (!path && strstr(given, ":SECRET@") != NULL && strstr(shown, "SECRET") != NULL)
        fail_msg("\"%s\" is shown as \"%s\"", given, shown);
}

static void any_bytes_are_taken_or_refused(void **state)
{
    static const char *const parts[] = {"redis+sentinel://",
                                        ",",
                                        "redis://",
                                        "rediss://",
                                        "unix:",
                                        "//",
                                        "/",
                                        "@",
                                        ":",
                                        "?db=",
                                        "?",
                                        "[",
                                        "]",
                                        "::1",
                                        "%",
                                        "%41",
                                        "h",
                                        "7",
                                        "65535",
                                        "0",
                                        "u",
                                        "a.b",
                                        "%00",
                                        "&",
                                        "\xff",
                                        "\n",
                                        "db=",
                                        "#",
                                        ":SECRET@"};
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned i = 0; i < run_scaled(400000); i++) {
        char given[512] = "";
        size_t at = 0;
        for (size_t left = rng_below(&rng, 12); left > 0; left--) {
            if (rng_below(&rng, 8) == 0)
                given[at++] = (char)(1 + rng_below(&rng, 255));
            else
                at += (size_t)sprintf(given + at, "%s", parts[rng_below(&rng, sizeof parts / sizeof *parts)]);
            given[at] = '\0';
        }
        check(given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_of_a_good_address_is_found),
        cmocka_unit_test(each_sentinel_and_the_service_are_found),
        cmocka_unit_test(each_bad_address_is_refused_with_its_reason),
        cmocka_unit_test(a_part_may_be_as_long_as_its_limit),
        cmocka_unit_test(what_was_encoded_is_decoded),
        cmocka_unit_test(any_bytes_are_taken_or_refused),
    };
    return cmocka_run_group_tests_name("link_url", tests, NULL, NULL);
}
