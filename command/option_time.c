/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "task_line.h"

#include <stdio.h>

enum { MS_NS = 1000000 };

bool option_time(const char *command, const char *option, uint64_t least_ms, uint64_t most_ms, uint64_t *ns)
{
    char least[DURATION_SIZE], most[DURATION_SIZE], expected[2 * DURATION_SIZE + 24];
    if (duration_parse(optarg, ns) && *ns >= least_ms * MS_NS && *ns <= most_ms * MS_NS)
        return true;
    duration_print(least_ms * MS_NS, least);
    duration_print(most_ms * MS_NS, most);
    snprintf(expected, sizeof expected, "a duration from %s to %s", least, most);
    return option_refuse(command, option, expected, optarg);
}

bool option_ms(const char *command, const char *option, uint64_t least_ms, uint64_t most_ms, uint64_t *ms)
{
    uint64_t ns = 0;
    bool good = option_time(command, option, least_ms, most_ms, &ns);
    *ms = ns / MS_NS;
    return good;
}
