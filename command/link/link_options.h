/* SPDX-License-Identifier: MIT
 *
 * The options that name a server: `tickwheel top` and `tickwheel work` have them in common.
 *
 *   link_options_add(&table, &options->link);
 *   after options_read():
 *   if (!link_options_end(&options->link, &table, "TICKWHEEL_WORK_PASSWORD")) return ...;
 */
#ifndef COMMAND_LINK_OPTIONS_H
#define COMMAND_LINK_OPTIONS_H

#include "command.h"
#include "link.h"

/* The values of the options. All zero: none was given. */
struct link_options {
    struct link_target target;
    const char *user;
    uint64_t db;
};

/* Adds the options to a table. */
void link_options_add(struct option_table *table, struct link_options *options);

/* Returns whether one of these options was given. */
bool link_options_given(const struct option_table *table);

/* Completes options->target, after all options are taken. The server is 127.0.0.1:7379 if none was named. A
 * password that the URL does not hold is taken from the environment's `variable` or, if that is not set, from
 * REDISCLI_AUTH. Returns false after it has printed an error, if the options contradict each other. */
bool link_options_end(struct link_options *options, const struct option_table *table, const char *variable);

/* The variable that holds the password of the sentinels, if they want one. */
#define LINK_SENTINEL_PASSWORD "TICKWHEEL_SENTINEL_PASSWORD"

/* The text of a help that describes these options. */
extern const char LINK_OPTIONS_HELP[];

#endif
