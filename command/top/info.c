/* SPDX-License-Identifier: MIT */
#include "info.h"

#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of a field of INFO; its data is NULL if there is no such field. */
static struct tw_bytes field(const char *info, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = info; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        line += length + 1;
        return (struct tw_bytes){line, strcspn(line, "\r\n")};
    }
    return (struct tw_bytes){NULL, 0};
}

static uint64_t info_number(const char *info, const char *name)
{
    const char *value = field(info, name).data;
    return value != NULL && isdigit((unsigned char)*value) ? strtoull(value, NULL, 10) : ABSENT;
}

static void info_text(const char *info, const char *name, char *to, size_t room)
{
    text_clean(to, room, field(info, name));
}

/* Reads a number of INFO whose field is tickwheel_, a kind and a name: for example tickwheel_deferred_role. */
static uint64_t count_field(const char *info, const char *kind, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "tickwheel_%s%s", kind, name);
    return info_number(info, full);
}

static void take_counts(const char *info, struct reading *reading)
{
    for (int i = 0; i < COUNTS; i++)
        reading->count[i] = count_field(info, "", COUNT_NAMES[i]);
    reading->count[COUNT_MEMORY] = count_field(info, "", "bytes");
    for (int i = 0; i < DEFERREDS; i++)
        reading->deferred[i] = count_field(info, "deferred_", DEFERRED_NAMES[i]);
    reading->all[LATE_CALLS] = reading_due(reading);
    for (int i = LATE_P50; i < LATE_NUMBERS; i++)
        reading->all[i] = reading_ns_of_us(count_field(info, "lateness_us_", LATE_NAMES[i]));
}

static void take_state(const char *info, struct reading *reading)
{
    char role[16], host[48], link[16], number[16];
    bool valkey = field(info, "valkey_version").data != NULL;
    info_text(info, valkey ? "valkey_version" : "redis_version", number, sizeof number);
    snprintf(reading->version, sizeof reading->version, "%s %s", valkey ? "valkey" : "redis", number);
    info_text(info, "role", role, sizeof role);
    info_text(info, "master_host", host, sizeof host);
    info_text(info, "master_link_status", link, sizeof link);
    const char *cluster = info_number(info, "cluster_enabled") == 1 ? " of a cluster" : "";
    reading->replica = strcmp(role, "slave") == 0;
    if (reading->replica)
        snprintf(reading->state, sizeof reading->state, "replica%s, its primary %s, link %s", cluster, host,
                 link);
    else
        snprintf(reading->state, sizeof reading->state, "primary%s", cluster);
    uint64_t up_s = info_number(info, "uptime_in_seconds");
    reading->up_s = up_s == ABSENT ? 0 : up_s;
    struct tw_bytes run = field(info, "run_id");
    reading->instance = run.data == NULL ? 0 : reading_hash(run);
}

bool info_read(const char *info, struct reading *reading)
{
    if (field(info, "tickwheel_tasks").data == NULL)
        return false;
    take_counts(info, reading);
    take_state(info, reading);
    info_text(info, "tickwheel_durability", reading->durability, sizeof reading->durability);
    info_text(info, "tickwheel_deliver", reading->deliver, sizeof reading->deliver);
    info_text(info, "tickwheel_warning", reading->warning, sizeof reading->warning);
    if (strcmp(reading->warning, "none") == 0)
        reading->warning[0] = '\0';
    return true;
}
