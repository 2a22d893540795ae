/* SPDX-License-Identifier: MIT
 *
 * The shape of the wheel as the user asks for it: --preset, --geometry, --overflow.
 */
#ifndef COMMAND_SHAPE_H
#define COMMAND_SHAPE_H

#include <tickwheel/wheel.h>

#include <getopt.h>
#include <stdbool.h>

enum { SHAPE_NAME_SIZE = 160 };

/* What the options said; NULL where there was none. */
struct shape_options {
    const char *preset, *geometry, *overflow;
};

/* What getopt_long() returns for the three, and their lines in its table. */
enum { SHAPE_PRESET = 0x1000, SHAPE_GEOMETRY, SHAPE_OVERFLOW };
/* clang-format off */
#define SHAPE_OPTIONS                                      \
    {"preset", required_argument, NULL, SHAPE_PRESET},     \
    {"geometry", required_argument, NULL, SHAPE_GEOMETRY}, \
    {"overflow", required_argument, NULL, SHAPE_OVERFLOW}
/* clang-format on */

/* Takes the option if it is one of the three, with its value in optarg; false if it is none. */
bool shape_take(struct shape_options *options, int code);

struct shape {
    struct tw_geometry geometry;
    char name[SHAPE_NAME_SIZE]; /* for people: "default", "hashed:512", "geometry 64/32,32" */
};

/* Makes the shape; with no option it is the default preset.
 * Returns: an exit status; what is wrong has been complained about. */
int shape_make(struct shape *shape, const struct shape_options *options);

/* The part of a help text that describes the three options. */
extern const char SHAPE_HELP[];

#endif
