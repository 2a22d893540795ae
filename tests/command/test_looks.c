/* SPDX-License-Identifier: MIT
 *
 * How often a command looks at its file: the transactions of all connections of this process are counted. A
 * command that begins one for each queue is slow with a hundred thousand queues.
 */
#include "command.h"

#include "tests/support/cmocka.h"
#include "tests/support/scratch.h"

#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel/store.h>

enum { QUEUES = 500, FEW = 10 };

static int begun; /* transactions */

static int note_statement(unsigned kind, void *arg, void *statement, void *text)
{
    (void)kind;
    (void)arg;
    (void)statement;
    begun += strncmp(text, "BEGIN", 5) == 0;
    return 0;
}

static int trace(sqlite3 *db, char **error, const void *functions)
{
    (void)error;
    (void)functions;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note_statement, NULL);
}

/* Makes a file with a task in each queue. */
static void make_file(char path[])
{
    struct tw_store *store;
    struct tw_store_change changes[QUEUES];
    char folder[SCRATCH], names[QUEUES][8], message[TW_STORE_MESSAGE_SIZE];
    assert_int_equal(scratch_folder(folder, "looks"), 0);
    snprintf(path, SCRATCH + 8, "%s/s.db", folder);
    assert_int_equal(tw_store_open(&store, path, NULL, message, sizeof message), 0);
    for (int i = 0; i < QUEUES; i++) {
        snprintf(names[i], sizeof names[i], "q%d", i);
        changes[i] = (struct tw_store_change){
            .task = {.queue = names[i], .id = tw_text("a"), .due_ms = TW_STORE_TIME_MAX}};
    }
    assert_int_equal(tw_store_apply(store, changes, QUEUES), 0);
    tw_store_close(store);
}

/* Runs a command. Returns the number of lines that it prints. */
static int lines_of(int (*command)(int argc, char **argv), int argc, char **argv)
{
    FILE *before = stdout;
    char *text = NULL;
    size_t size = 0;
    int lines = 0;
    stdout = open_memstream(&text, &size);
    assert_non_null(stdout);
    optind = 0;
    begun = 0;
    int status = command(argc, argv);
    fclose(stdout);
    stdout = before;
    assert_int_equal(status, 0);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    free(text);
    return lines;
}

static void tasks_looks_a_few_times(void **state)
{
    static const struct {
        const char *action;
        int lines; /* of a queue */
    } looks[] = {{"list", 3}, {"next", 3}, {"forecast", 1}, {"dead", 0}, {NULL, 1}};
    char path[SCRATCH + 8];
    (void)state;
    make_file(path);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        char *argv[] = {"tasks", "--store", path, (char *)looks[i].action, NULL};
        int lines = lines_of(command_tasks, looks[i].action != NULL ? 4 : 3, argv);
        assert_in_range(lines, looks[i].lines * QUEUES, looks[i].lines * QUEUES + 1);
        assert_in_range(begun, 1, FEW);
    }
}

static void top_looks_a_few_times(void **state)
{
    char path[SCRATCH + 8];
    char *argv[] = {"top", "--store", path, "--once", NULL};
    (void)state;
    make_file(path);
    assert_in_range(lines_of(command_top, 4, argv), 1, QUEUES);
    assert_in_range(begun, 1, FEW);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_looks_a_few_times),
                                              cmocka_unit_test(top_looks_a_few_times)};
    sqlite3_auto_extension((void (*)(void))trace);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
