/* SPDX-License-Identifier: MIT
 *
 * The end of an append-only file, for files cut off at every byte, compared with the list of commands from
 * which they were made.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/server/aof.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file_of(const char *text, size_t size)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
    assert_non_null(file);
    return file;
}

static enum tw__redis_aof_ends end_of(const char *text, size_t size, uint64_t *at)
{
    FILE *file = file_of(text, size);
    enum tw__redis_aof_ends end = tw__redis_aof_end(file, at);
    fclose(file);
    return end;
}

static void is(const char *text, enum tw__redis_aof_ends expected, size_t where)
{
    uint64_t at = 0;
    assert_int_equal(end_of(text, strlen(text), &at), expected);
    assert_int_equal(at, where);
}

#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"
#define GET "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"

static void a_transaction_without_its_end_is_found(void **state)
{
    (void)state;
    is("", TW__REDIS_AOF_WHOLE, 0);
    is(GET MULTI GET EXEC GET, TW__REDIS_AOF_WHOLE, strlen(GET));
    is(MULTI, TW__REDIS_AOF_OPEN, 0);
    is(GET GET MULTI GET, TW__REDIS_AOF_OPEN, 2 * strlen(GET));
    is(MULTI EXEC MULTI, TW__REDIS_AOF_OPEN, strlen(MULTI EXEC));
    is("#TS:1795312608\r\n" GET "#TS:1\r\n" MULTI "#\n" GET, TW__REDIS_AOF_OPEN,
       strlen("#TS:1795312608\r\n" GET "#TS:1\r\n"));
    is("*1\r\n$5\r\nmulti\r\n" GET, TW__REDIS_AOF_OPEN, 0);
    is(MULTI GET "*1\r\n$4\r\nExec\r\n", TW__REDIS_AOF_WHOLE, 0);
    is(EXEC GET, TW__REDIS_AOF_WHOLE, 0);
}

static void what_begins_within_one_belongs_to_it(void **state)
{
    (void)state;
    is(GET MULTI GET MULTI, TW__REDIS_AOF_OPEN, strlen(GET));
    is(MULTI MULTI GET MULTI GET, TW__REDIS_AOF_OPEN, 0);
    is(MULTI MULTI EXEC GET, TW__REDIS_AOF_WHOLE, 0);
}

static void what_is_in_an_argument_is_no_command(void **state)
{
    (void)state;
    is("*2\r\n$4\r\nECHO\r\n$15\r\n" MULTI "\r\n", TW__REDIS_AOF_WHOLE, 0);
    is(MULTI "*2\r\n$4\r\nECHO\r\n$14\r\n" EXEC "\r\n", TW__REDIS_AOF_OPEN, 0);
    is("*2\r\n$4\r\nECHO\r\n$5\r\nMULTI\r\n", TW__REDIS_AOF_WHOLE, 0);
    is("*1\r\n$6\r\nMULTIS\r\n*1\r\n$4\r\nMULT\r\n*1\r\n$0\r\n\r\n", TW__REDIS_AOF_WHOLE, 0);
}

static void what_is_no_such_file_is_said_to_be_none(void **state)
{
    (void)state;
    static const char *const others[] = {
        "REDIS0010",
        "\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\n$3\r\nGET\r\n",
        "*x\r\n",
        "*\r\n",
        "*1\r\n*1\r\n",
        "*1\r\n$\r\n\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$18446744073709551615\r\nGET\r\n",
        "*1\r\n$18446744073709551619\r\nGET\r\n", /* 2^64 + 3, which is 3 if it overflows */
        "*1\r\n$3\r\nGET\n\r",
        "*1\r\n$3\r\nGET*1",
        "*1\r\n$999999999999999999\r\nGET\r\n",
        "*999999999999999999\r\n$3\r\nGET\r\n",
        "# no newline",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is(others[i], TW__REDIS_AOF_FOREIGN, 0);
}

/* Arguments of all sizes around the reader's buffer, so that each part of a command comes to lie at its
 * end. */
static void arguments_longer_than_a_buffer(void **state)
{
    (void)state;
    enum { BUFFER = 16384, ABOUT = 48 };
    static char text[3 * BUFFER];
    for (int size = 0; size < 2 * BUFFER + ABOUT; size += size % BUFFER == ABOUT ? BUFFER - 2 * ABOUT : 1) {
        uint64_t at = 0;
        int head = sprintf(text, "*2\r\n$3\r\nSET\r\n$%d\r\n", size), begin = head + size + 2;
        memset(text + head, '$', (size_t)size);
        int tail = sprintf(text + head + size, "\r\n" MULTI GET);
        assert_int_equal(end_of(text, (size_t)(head + size + tail), &at), TW__REDIS_AOF_OPEN);
        assert_int_equal(at, begin);
        assert_int_equal(end_of(text, (size_t)(head + size + tail - 1), &at), TW__REDIS_AOF_FOREIGN);
        strcat(text + head + size, EXEC);
        assert_int_equal(end_of(text, (size_t)head + (size_t)size + strlen("\r\n" MULTI GET EXEC), &at),
                         TW__REDIS_AOF_WHOLE);
    }
}

/* ---- files of any commands, cut off anywhere ------------------------------------------------------------- */

enum { COMMANDS = 40, ROOM = COMMANDS * 200 };

struct model {
    char text[ROOM];
    size_t size, begins[COMMANDS + 1];
    enum { OTHER, IS_MULTI, IS_EXEC } kind[COMMANDS];
};

static void write_text(struct model *model, const char *text)
{
    memcpy(model->text + model->size, text, strlen(text));
    model->size += strlen(text);
}

/* Writes a command of one to three arguments of any bytes. The bytes that RESP uses are more frequent. */
static void write_other(struct model *model, struct rng *rng)
{
    static const char often[] = "\r\n$*#1MULTIEXEC";
    uint64_t count = 1 + rng_below(rng, 3);
    char header[32];
    snprintf(header, sizeof header, "*%d\r\n", (int)count);
    write_text(model, header);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = rng_below(rng, 30);
        snprintf(header, sizeof header, "$%d\r\n", (int)size);
        write_text(model, header);
        while (size-- > 0)
            model->text[model->size++] =
                rng_below(rng, 4) == 0 ? (char)rng_below(rng, 256) : often[rng_below(rng, sizeof often - 1)];
        if (i == 0 && strchr("ci", model->text[model->size - 1] | 0x20) != NULL)
            model->text[model->size - 1] = '#'; /* so that it is neither MULTI nor EXEC */
        write_text(model, "\r\n");
    }
}

static void write_model(struct model *model, struct rng *rng)
{
    model->size = 0;
    for (int i = 0; i < COMMANDS; i++) {
        model->begins[i] = model->size;
        model->kind[i] = (int)rng_below(rng, 5) > 1 ? OTHER : rng_below(rng, 2) == 0 ? IS_MULTI : IS_EXEC;
        if (model->kind[i] == OTHER)
            write_other(model, rng);
        else
            write_text(model, model->kind[i] == IS_MULTI ? MULTI : EXEC);
    }
    model->begins[COMMANDS] = model->size;
}

/* Whether a transaction is open after the first `commands` commands, and where it begins. */
static bool model_open(const struct model *model, int commands, uint64_t *at)
{
    bool open = false;
    for (int i = 0; i < commands; i++) {
        if (model->kind[i] == IS_MULTI && !open)
            *at = model->begins[i];
        if (model->kind[i] != OTHER)
            open = model->kind[i] == IS_MULTI;
    }
    return open;
}

static void files_cut_at_any_byte(void **state)
{
    (void)state;
    struct rng rng;
    static struct model model;
    unsigned seen[3] = {0};
    rng_init(&rng, run_seed());
    for (unsigned round = run_scaled(200); round-- > 0;) {
        write_model(&model, &rng);
        int whole = 0;
        for (size_t size = 0; size <= model.size; size++) {
            uint64_t at = 0, open_at = 0;
            while (whole < COMMANDS && model.begins[whole + 1] <= size)
                whole++;
            bool open = model_open(&model, whole, &open_at);
            enum tw__redis_aof_ends end = end_of(model.text, size, &at);
            assert_int_equal(end, model.begins[whole] != size ? TW__REDIS_AOF_FOREIGN
                                  : open                      ? TW__REDIS_AOF_OPEN
                                                              : TW__REDIS_AOF_WHOLE);
            if (end == TW__REDIS_AOF_OPEN)
                assert_int_equal(at, open_at);
            seen[end]++;
        }
    }
    for (int end = 0; end < 3; end++)
        assert_true(seen[end] > 10);
}

/* ---- manifests ------------------------------------------------------------------------------------------- */

static void last_is(const char *manifest, const char *expected)
{
    char name[64] = "";
    FILE *file = file_of(manifest, strlen(manifest));
    assert_int_equal(tw__redis_aof_last(file, name, sizeof name), expected != NULL);
    if (expected != NULL)
        assert_string_equal(name, expected);
    fclose(file);
}

static void the_manifest_says_which_file_is_loaded_last(void **state)
{
    (void)state;
    last_is("file a.aof.1.base.rdb seq 1 type b\nfile a.aof.1.incr.aof seq 1 type i\n", "a.aof.1.incr.aof");
    last_is("file a.1 seq 1 type i\nfile a.2 seq 2 type i startoffset 0\n", "a.2");
    last_is("#comment\nfile a.3.base seq 3 type b\nfile a.2 seq 2 type h\nfile a.9 seq 9 type i\n", "a.9");
    last_is("file a.9 seq 9 type i\nfile a.3.base seq 3 type b\nfile a.2 seq 2 type h\n", "a.9");
    last_is("seq 1 type i file a\n", "a");
    last_is("file a seq 1 type b\n", "a");
    last_is("file a seq 1 type i", "a");
    last_is("# file a seq 1 type i\n", NULL);
    last_is("# x file a type i\n", NULL);
    last_is("file a.1 seq 1 type i\nfile a.2 seq 2\n", "a.1");
    last_is("file a seq 1 type h\n", NULL);
    last_is("file a seq 1\n", NULL);
    last_is("seq 1 type i\n", NULL);
    last_is("file\n", NULL);
    last_is("", NULL);
    last_is("\n\n", NULL);
}

static void names_are_read_as_they_are_quoted(void **state)
{
    (void)state;
    last_is("file \"it is mine.1\" seq 1 type i\n", "it is mine.1");
    last_is("file \"type h\" seq 1 type i\n", "type h");
    last_is("file \"a\\\"b\\\\c\" seq 1 type i\n", "a\"b\\c");
    last_is("file \"\\n\\r\\t\\a\\b\" seq 1 type i\n", "\n\r\t\a\b");
    last_is("file \"f\\xc3\\xbcnf\" seq 1 type i\n", "f\xc3\xbcnf");
    last_is("file \"\\xzz\\x1\" seq 1 type i\n", "xzzx1");
    last_is("file \"\" seq 1 type i\n", NULL);
    last_is("file \"no end", NULL);
    last_is("file \"no end\\", NULL);
    last_is("file \"no end\\x", NULL);
}

static void a_file_that_cannot_be_read_is_said_to_be_none(void **state)
{
    (void)state;
    uint64_t at = 0;
    FILE *folder = fopen("/", "r");
    assert_non_null(folder);
    assert_int_equal(tw__redis_aof_end(folder, &at), TW__REDIS_AOF_FOREIGN);
    assert_true(ferror(folder));
    fclose(folder);
}

static void a_name_without_room_is_none(void **state)
{
    (void)state;
    char line[3000], name[64];
    for (int size = 1; size < 2900; size += size < 70 || (size > 1000 && size < 1050) ? 1 : 93) {
        sprintf(line, "file %0*d seq 1 type i\n", size, 0);
        FILE *file = file_of(line, strlen(line));
        assert_int_equal(tw__redis_aof_last(file, name, sizeof name), size < (int)sizeof name);
        fclose(file);
        assert_true(size >= (int)sizeof name || (int)strlen(name) == size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_without_its_end_is_found),
        cmocka_unit_test(what_begins_within_one_belongs_to_it),
        cmocka_unit_test(what_is_in_an_argument_is_no_command),
        cmocka_unit_test(what_is_no_such_file_is_said_to_be_none),
        cmocka_unit_test(a_file_that_cannot_be_read_is_said_to_be_none),
        cmocka_unit_test(arguments_longer_than_a_buffer),
        cmocka_unit_test(files_cut_at_any_byte),
        cmocka_unit_test(the_manifest_says_which_file_is_loaded_last),
        cmocka_unit_test(names_are_read_as_they_are_quoted),
        cmocka_unit_test(a_name_without_room_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
