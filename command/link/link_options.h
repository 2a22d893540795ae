/* SPDX-License-Identifier: MIT
 *
 * The options that name a server: `tickwheel top` and `tickwheel work` have them in common.
 *
 *   static const struct option LONG[] = {LINK_OPTIONS, {"jobs", ...}, ...};
 *   take():  if (link_options_has(code)) return link_options_take(&options->link, "tickwheel work", code);
 *   after:   if (!link_options_end(&options->link, "tickwheel work", "TICKWHEEL_WORK_PASSWORD")) return ...;
 */
#ifndef COMMAND_LINK_OPTIONS_H
#define COMMAND_LINK_OPTIONS_H

#include "link.h"

#include <getopt.h>

/* The codes of the options for getopt_long(), and their lines for its table. */
enum {
    LINK_OPTION_REDIS = 0x1200,
    LINK_OPTION_USER,
    LINK_OPTION_DB,
    LINK_OPTION_CACERT,
    LINK_OPTION_CERT,
    LINK_OPTION_KEY
};
/* clang-format off */
#define LINK_OPTIONS                                         \
    {"redis", required_argument, NULL, LINK_OPTION_REDIS},   \
    {"user", required_argument, NULL, LINK_OPTION_USER},     \
    {"db", required_argument, NULL, LINK_OPTION_DB},         \
    {"cacert", required_argument, NULL, LINK_OPTION_CACERT}, \
    {"cert", required_argument, NULL, LINK_OPTION_CERT},     \
    {"key", required_argument, NULL, LINK_OPTION_KEY}
/* clang-format on */

/* The values of the options. All zero: none was given. */
struct link_options {
    struct link_target target;
    const char *user;
    bool has_address, has_db;
    int db;
};

/* Returns whether `code` is that of one of these options. */
bool link_options_has(int code);

/* Takes the option of `code`, whose value is in optarg. Returns false after it has printed an error that begins
 * with `command`, for example "tickwheel top". */
bool link_options_take(struct link_options *options, const char *command, int code);

/* Returns whether one of these options was given. */
bool link_options_given(const struct link_options *options);

/* Completes options->target, after all options are taken. The server is 127.0.0.1:7379 if none was named. A
 * password that the URL does not hold is taken from the environment's `variable` or, if that is not set, from
 * REDISCLI_AUTH. Returns false after it has printed an error, if the options contradict each other. */
bool link_options_end(struct link_options *options, const char *command, const char *variable);

/* The text of a help that describes these options. */
extern const char LINK_OPTIONS_HELP[];

#endif
