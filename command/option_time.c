/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "task_line.h"

#include <stdio.h>

enum { MS_NS = 1000000 };

static bool take_ns(const struct option_row *row)
{
    uint64_t *ns = row->to;
    char least[DURATION_SIZE], most[DURATION_SIZE], expected[2 * DURATION_SIZE + 24];
    if (duration_parse(optarg, ns) && *ns >= row->least * MS_NS && *ns <= row->most * MS_NS)
        return true;
    duration_print(row->least * MS_NS, least);
    duration_print(row->most * MS_NS, most);
    snprintf(expected, sizeof expected, "a duration from %s to %s", least, most);
    return option_refuse(row, expected);
}

static bool take_ms(const struct option_row *row)
{
    uint64_t *ms = row->to;
    bool good = take_ns(row);
    *ms = *ms < MS_NS ? row->zero : *ms / MS_NS;
    return good;
}

struct option_row *options_ns(struct option_table *table, const char *name, uint64_t *to, uint64_t least_ms,
                              uint64_t most_ms)
{
    return options_range(table, name, take_ns, to, least_ms, most_ms);
}

struct option_row *options_ms(struct option_table *table, const char *name, uint64_t *to, uint64_t least_ms,
                              uint64_t most_ms)
{
    return options_range(table, name, take_ms, to, least_ms, most_ms);
}
