/* SPDX-License-Identifier: MIT */
#include "task_options.h"

#include "command.h"
#include "printable.h"

#include <base/utf8.h>

#include <stdio.h>
#include <string.h>
#include <task/limits.h>
#include <task/words.h>

enum { QUEUE_COLUMNS = 80 };

const char TASK_OPTIONS_HELP[] =
    "  --tries N       failures until the task is dead, 1 to 1000000. A dead task\n"
    "                  stays in the file, with its error\n"
    "  --backoff TIME  wait after the first failure, 1ms to 36525d\n"
    "  --factor X      each further wait is so many times as long, 1 to 100, such\n"
    "                  as 1.5\n"
    "  --backoff-max TIME\n"
    "                  the longest wait, 1ms to 36525d\n"
    "  --jitter N      percent by which each wait is shorter or longer, 0 to 100.\n"
    "                  These five are as the file has them at the failure, if left\n"
    "                  out. A new file has 20 tries, 1s, 2, 1h and 10\n"
    "  --max-late TIME a call that would be later is not made, and its task or period\n"
    "                  is dropped, 0s to 36525d (default: no limit)\n"
    "  --missed HOW    missed periods, coalesce by default: burst, skip or coalesce\n"
    "                  burst makes up for each of them, skip for none, and coalesce\n"
    "                  makes one call for all\n";

bool task_options_queue(const char *command, const char *queue, bool any_bytes)
{
    struct tw_bytes name = tw_text(queue);
    if (name.size > 0 && name.size <= TW_STORE_QUEUE_MAX && (any_bytes || tw__is_utf8(queue, name.size)))
        return true;
    fprintf(stderr, "%s: --queue: expected a name of 1 to 255 bytes of UTF-8, found \"", command);
    printable_write(name, false, QUEUE_COLUMNS, stderr);
    fputs("\"\n", stderr);
    return false;
}

bool task_options_take_queue(const struct option_row *row)
{
    const char **queue = row->to;
    *queue = optarg;
    return task_options_queue(row->command, optarg, true);
}

/* "1.5" is 150 hundredths. */
static bool take_factor(const struct option_row *row)
{
    uint64_t *factor = row->to;
    char whole[8], *point;
    uint64_t ones = 0, places = 0;
    snprintf(whole, sizeof whole, "%s", optarg);
    point = strchr(whole, '.');
    size_t digits = point != NULL ? strlen(point + 1) : 0;
    if (point != NULL)
        *point = '\0';
    bool good = strlen(optarg) < sizeof whole && number_parse(whole, 100, &ones) && digits <= 2 &&
                (point == NULL || number_parse(point + 1, 99, &places));
    *factor = TW__TASK_HUNDREDTHS * ones + (digits == 1 ? 10 * places : places);
    return (good && tw__task_in_range(TW__TASK_IN_FACTOR, *factor)) ||
           option_refuse(row, "a number from 1 to 100, with at most two decimals");
}

static bool take_missed(const struct option_row *row)
{
    struct task_options *options = row->to;
    options->missed_given = true;
    return tw__task_missed_named(optarg, &options->missed) || option_refuse(row, "burst, skip or coalesce");
}

typedef struct option_row *add_fn(struct option_table *table, const char *name, uint64_t *to, uint64_t least,
                                  uint64_t most);

static struct option_row *add(struct option_table *table, add_fn *add_one, const char *name,
                              enum tw__task_number which, uint64_t *to)
{
    struct tw__task_range range = tw__task_range(which);
    return add_one(table, name, to, range.least, range.most);
}

void task_options_add(struct option_table *table, struct task_options *options)
{
    options_other(table, "--queue", task_options_take_queue, &options->queue);
    add(table, options_number, "--tries", TW__TASK_IN_TRIES, &options->tries);
    add(table, options_ms, "--backoff", TW__TASK_IN_BACKOFF, &options->backoff_ms);
    options_other(table, "--factor", take_factor, &options->factor_percent);
    add(table, options_ms, "--backoff-max", TW__TASK_IN_BACKOFF_MAX, &options->backoff_max_ms);
    add(table, options_number, "--jitter", TW__TASK_IN_JITTER, &options->jitter)->zero = TW_STORE_NO_JITTER;
    add(table, options_ms, "--max-late", TW__TASK_IN_MAX_LATE, &options->max_late_ms)->zero = TW_STORE_ON_TIME;
    options_other(table, "--missed", take_missed, options);
}
