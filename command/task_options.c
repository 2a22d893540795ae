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

bool task_options_has(int code)
{
    return code >= TASK_OPTION_QUEUE && code <= TASK_OPTION_KEEPDUE;
}

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

static bool take_number(const char *command, const char *option, enum tw__task_number which, uint32_t *value)
{
    struct tw__task_range range = tw__task_range(which);
    uint64_t number = 0;
    bool good = option_number(command, option, range.least, range.most, &number);
    *value = (uint32_t)number;
    return good;
}

static bool take_time(const char *command, const char *option, enum tw__task_number which, uint64_t *ms)
{
    struct tw__task_range range = tw__task_range(which);
    return option_ms(command, option, range.least, range.most, ms);
}

/* "1.5" is 150 hundredths. */
static bool take_factor(struct task_options *options, const char *command)
{
    char whole[8], *point;
    uint64_t ones = 0, places = 0;
    snprintf(whole, sizeof whole, "%s", optarg);
    point = strchr(whole, '.');
    size_t digits = point != NULL ? strlen(point + 1) : 0;
    if (point != NULL)
        *point = '\0';
    bool good = strlen(optarg) < sizeof whole && number_parse(whole, 100, &ones) && digits <= 2 &&
                (point == NULL || number_parse(point + 1, 99, &places));
    uint64_t factor = TW__TASK_HUNDREDTHS * ones + (digits == 1 ? 10 * places : places);
    if (!good || !tw__task_in_range(TW__TASK_IN_FACTOR, factor))
        return option_refuse(command, "--factor", "a number from 1 to 100, with at most two decimals", optarg);
    options->factor = (uint32_t)factor;
    return true;
}

static bool take_jitter(struct task_options *options, const char *command)
{
    bool good = take_number(command, "--jitter", TW__TASK_IN_JITTER, &options->jitter);
    if (options->jitter == 0)
        options->jitter = TW_STORE_NO_JITTER;
    return good;
}

static bool take_max_late(struct task_options *options, const char *command)
{
    bool good = take_time(command, "--max-late", TW__TASK_IN_MAX_LATE, &options->max_late_ms);
    if (options->max_late_ms == 0)
        options->max_late_ms = TW_STORE_ON_TIME;
    return good;
}

static bool take_missed(struct task_options *options, const char *command)
{
    options->missed_given = tw__task_missed_named(optarg, &options->missed);
    return options->missed_given || option_refuse(command, "--missed", "burst, skip or coalesce", optarg);
}

static bool take_condition(struct task_options *options, const char *command)
{
    static const struct {
        const char *name;
        unsigned condition;
    } conditions[] = {
        {"nx", TW_CONDITION_NX}, {"xx", TW_CONDITION_XX}, {"gt", TW_CONDITION_GT}, {"lt", TW_CONDITION_LT}};
    const char *before = NULL, *found = NULL;
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        if (strcmp(optarg, conditions[i].name) == 0) {
            found = conditions[i].name;
            options->conditions |= conditions[i].condition;
        } else if (options->conditions & conditions[i].condition) {
            before = conditions[i].name;
        }
    }
    if (found == NULL)
        return option_refuse(command, "--if", "nx, xx, gt or lt", optarg);
    if (before == NULL)
        return true;
    complain("%s: the conditions are %s and %s: expected one of nx, xx, gt and lt", command, before, found);
    return false;
}

bool task_options_take(struct task_options *options, const char *command, int code)
{
    switch (code) {
    case TASK_OPTION_QUEUE:
        options->queue = optarg;
        return task_options_queue(command, optarg, true);
    case TASK_OPTION_TRIES:
        return take_number(command, "--tries", TW__TASK_IN_TRIES, &options->tries);
    case TASK_OPTION_BACKOFF:
        return take_time(command, "--backoff", TW__TASK_IN_BACKOFF, &options->backoff_ms);
    case TASK_OPTION_FACTOR:
        return take_factor(options, command);
    case TASK_OPTION_BACKOFF_MAX:
        return take_time(command, "--backoff-max", TW__TASK_IN_BACKOFF_MAX, &options->backoff_max_ms);
    case TASK_OPTION_JITTER:
        return take_jitter(options, command);
    case TASK_OPTION_MAX_LATE:
        return take_max_late(options, command);
    case TASK_OPTION_MISSED:
        return take_missed(options, command);
    case TASK_OPTION_KEEPDUE:
        options->conditions |= TW_CONDITION_KEEPDUE;
        return true;
    default:
        return take_condition(options, command);
    }
}
