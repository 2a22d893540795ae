/* SPDX-License-Identifier: MIT
 *
 * The table of the contract (src/task/state.h) as a filter. A line of numbers comes in: the time, a call, a
 * task, and the options of a put. A line goes out: the outcome, the task afterwards, and the dead period. First
 * go out three lines with the names of the numbers, so that table_home.py knows their order.
 */
#include <task/state.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 2048 };

/* clang-format off */
#define CALL(X) X(verb) X(conditions) X(timed) X(elsewhere) X(at_ms) X(token) X(lease_ms)
#define TASK(X) \
    X(stage) X(has_target) X(due_ms) X(next_ms) X(attempt) X(lapses) X(missed_periods) X(every_ms) X(times) \
    X(missed) X(max_late_ms) X(retry.tries) X(retry.factor_percent) X(retry.jitter) \
    X(retry.first_ms) X(retry.max_ms) X(token) X(end_ms) X(lease_ms) X(old_attempt)
#define OUTCOME(X) \
    X(reply) X(value_ms) X(filed) X(filed_ms) X(renewed) X(clears_error) X(fails) \
    X(tally.done) X(tally.failed) X(tally.lapsed) X(tally.back) X(tally.died) X(tally.dropped) \
    X(tally.skipped) X(tally.coalesced) X(tally.delivered) X(tally.replaced)
/* clang-format on */

#define NAME(member) #member " "
#define READ(member) of->member = (__typeof__(of->member))number(at);
#define WRITE(member) printf("%" PRIu64 " ", (uint64_t)of->member);

static uint64_t number(char **at)
{
    char *end;
    uint64_t found = strtoull(*at, &end, 10);
    if (end == *at) {
        fprintf(stderr, "table: expected a number, found '%s'\n", *at);
        exit(2);
    }
    *at = end;
    return found;
}

static void read_call(char **at, struct tw__task_call *of)
{
    CALL(READ)
}

static void read_task(char **at, struct tw__task *of)
{
    TASK(READ)
}

static void write_task(const struct tw__task *of)
{
    TASK(WRITE)
}

static void write_outcome(const struct tw__task_outcome *of)
{
    OUTCOME(WRITE)
    write_task(&of->task);
    write_task(&of->dead);
    puts("");
}

int main(void)
{
    char line[LINE];
    puts(CALL(NAME) "\n" TASK(NAME) "\n" OUTCOME(NAME));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct tw__task task = {.stage = TW__TASK_NONE}, options = task;
        struct tw__task_call call = {.options = &options};
        struct tw__task_outcome outcome = {0}; /* of `dead` a verb may set the stage alone */
        char *at = line;
        uint64_t now_ms = number(&at);
        read_call(&at, &call);
        read_task(&at, &task);
        read_task(&at, &options);
        tw__task_change(&task, &call, now_ms, &outcome);
        write_outcome(&outcome);
        fflush(stdout);
    }
    return 0;
}
