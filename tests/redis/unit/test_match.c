/* SPDX-License-Identifier: MIT
 *
 * Patterns of ids: compared with a reference that tries everything, and long patterns, which make other
 * matchers go back again and again. test_queries.py shows that the server means the same by a pattern.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/queues/match.h>
#include <stdlib.h>

static bool matches(const char *text, size_t size, const char *id, size_t id_size)
{
    struct tw__redis_pattern pattern;
    tw__redis_pattern_read(&pattern, (struct tw__redis_bytes){text, size});
    return tw__redis_pattern_matches(&pattern, (struct tw__redis_bytes){id, id_size});
}

static void each_sort_of_pattern_matches(void **state)
{
    static const struct {
        const char *pattern, *id;
        bool match;
    } cases[] = {
        {"", "", true},         {"", "a", false},        {"a", "", false},         {"*", "", true},
        {"**", "", true},       {"*", "abc", true},      {"a*", "a", true},        {"a*c", "abbc", true},
        {"a*c", "abbd", false}, {"*a", "bab", false},    {"*a*", "bab", true},     {"?", "", false},
        {"?", "a", true},       {"?", "ab", false},      {"a?*", "a", false},      {"[abc]", "b", true},
        {"[abc]", "d", false},  {"[a-c]", "b", true},    {"[c-a]", "b", true},     {"[a-c]", "-", false},
        {"[^a]", "b", true},    {"[^a]", "a", false},    {"[^a]", "^", true},      {"[a^]", "^", true},
        {"[!a]", "!", true},    {"[!a]", "b", false},    {"[]a", "a", false},      {"[]", "a", false},
        {"[^]", "a", true},     {"[", "[", false},       {"[^", "a", true},        {"[ab", "b", true},
        {"[a-]", "]", true},    {"[a-]", "^", true},     {"[a-]", "-", false},     {"[\\]]", "]", true},
        {"[\\a-]", "-", true},  {"[\\^a]", "^", true},   {"[a-\\]", "\\", true},   {"\\*", "*", true},
        {"\\*", "a", false},    {"\\", "\\", true},      {"a\\", "a\\", true},     {"\\\\", "\\", true},
        {"[\\", "\\", true},    {"]", "]", true},        {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false},
        {"ab*ab", "ab", false}, {"ab*ab", "abab", true}, {"T", "t", false},        {"\\?", "x", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (matches(cases[i].pattern, strlen(cases[i].pattern), cases[i].id, strlen(cases[i].id)) !=
            cases[i].match)
            fail_msg("%s and %s", cases[i].pattern, cases[i].id);
}

static void bytes_that_are_no_letters_are_bytes(void **state)
{
    (void)state;
    assert_true(matches("a\0b", 3, "a\0b", 3));
    assert_false(matches("a\0b", 3, "a\0c", 3));
    assert_true(matches("a*", 2, "a\0\n\r", 4));
    assert_true(matches("[\x80-\xff]", 5, "\xc3", 1));
    assert_false(matches("[\x80-\xff]", 5, "a", 1));
    assert_true(matches("[\0-a]", 5, "\x05", 1));
    assert_true(matches("?\xff", 2, "\xff\xff", 2));
}

/* ---- a reference ----------------------------------------------------------------------------------------- */

/* A reference for patterns without classes: it tries each star with each length. */
static bool tries_everything(const char *pattern, const char *id)
{
    if (*pattern == '*')
        return tries_everything(pattern + 1, id) || (*id != '\0' && tries_everything(pattern, id + 1));
    if (*pattern == '\0' || *id == '\0')
        return *pattern == *id;
    return (*pattern == '?' || *pattern == *id) && tries_everything(pattern + 1, id + 1);
}

static void random_string(struct rng *rng, const char *letters, size_t most, char *string)
{
    size_t size = rng_below(rng, most + 1);
    for (size_t i = 0; i < size; i++)
        string[i] = letters[rng_below(rng, strlen(letters))];
    string[size] = '\0';
}

static void random_patterns_match_what_the_reference_says(void **state)
{
    struct rng rng;
    unsigned matched = 0, count = 200000;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned i = 0; i < count; i++) {
        char pattern[16], id[16];
        random_string(&rng, "aabb**?", 10, pattern);
        random_string(&rng, "aab", 12, id);
        bool expected = tries_everything(pattern, id);
        if (matches(pattern, strlen(pattern), id, strlen(id)) != expected)
            fail_msg("%s and %s: expected %d", pattern, id, expected);
        matched += expected;
    }
    assert_in_range(matched, count / 50, count / 2);
}

/* ---- long patterns --------------------------------------------------------------------------------------- */

/* The positions cross the borders of all words, with and without a star there. */
static void every_length_of_pattern_matches_the_id_that_it_spells(void **state)
{
    char id[TW__REDIS_PATTERN_MAX + 1], pattern[TW__REDIS_PATTERN_MAX];
    (void)state;
    for (size_t size = 1; size <= TW__REDIS_PATTERN_MAX; size++) {
        for (size_t i = 0; i < size; i++)
            id[i] = (char)('a' + i * i % 23);
        id[size] = '~';
        assert_true(matches(id, size, id, size));
        assert_false(matches(id, size, id, size + 1));
        assert_false(matches(id, size, id, size - 1));
        for (size_t star = 0; star < size; star++) {
            memcpy(pattern, id, size);
            pattern[star] = '*';
            assert_true(matches(pattern, size, id, size));
            assert_int_equal(matches(pattern, size, id, size + 1), star == size - 1);
        }
    }
}

/* Each byte of these ids fits far into the pattern, and in many places. */
static void no_pattern_is_hostile(void **state)
{
    enum { ID = 1 << 20 };
    char pattern[TW__REDIS_PATTERN_MAX], *id = malloc(ID);
    (void)state;
    assert_non_null(id);
    memset(id, 'a', ID);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 == 0 ? '*' : 'a';
    assert_true(matches(pattern, sizeof pattern, id, ID));
    pattern[sizeof pattern - 1] = 'b';
    assert_false(matches(pattern, sizeof pattern, id, ID));
    memset(pattern, 'a', sizeof pattern);
    pattern[0] = '*';
    pattern[sizeof pattern - 1] = 'b';
    assert_false(matches(pattern, sizeof pattern, id, ID));
    id[ID - 1] = 'b';
    assert_true(matches(pattern, sizeof pattern, id, ID));
    free(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sort_of_pattern_matches),
        cmocka_unit_test(bytes_that_are_no_letters_are_bytes),
        cmocka_unit_test(random_patterns_match_what_the_reference_says),
        cmocka_unit_test(every_length_of_pattern_matches_the_id_that_it_spells),
        cmocka_unit_test(no_pattern_is_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
