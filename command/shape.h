/* SPDX-License-Identifier: MIT
 *
 * The shape of the wheel as the user asks for it: --preset, --geometry, --overflow.
 */
#ifndef TW_TOOLS_SHAPE_H
#define TW_TOOLS_SHAPE_H

#include <tickwheel/wheel.h>

#include <getopt.h>
#include <stdbool.h>

enum { TW_SHAPE_NAME_SIZE = 160 };

/* What the options said; NULL where there was none. */
struct tw_shape_options {
    const char *preset, *geometry, *overflow;
};

/* What getopt_long() returns for the three, and their lines in its table. */
enum { TW_SHAPE_PRESET = 0x1000, TW_SHAPE_GEOMETRY, TW_SHAPE_OVERFLOW };
/* clang-format off */
#define TW_SHAPE_OPTIONS                                      \
    {"preset", required_argument, NULL, TW_SHAPE_PRESET},     \
    {"geometry", required_argument, NULL, TW_SHAPE_GEOMETRY}, \
    {"overflow", required_argument, NULL, TW_SHAPE_OVERFLOW}
/* clang-format on */

/* Takes the option if it is one of the three, with its value in optarg; false if it is none. */
bool tw_shape_take(struct tw_shape_options *options, int code);

struct tw_shape {
    struct tw_geometry geometry;
    char name[TW_SHAPE_NAME_SIZE]; /* for people: "default", "hashed:512", "geometry 64/32,32" */
};

/* Makes the shape; with no option it is the default preset.
 * Returns: an exit status; what is wrong has been complained about. */
int tw_shape_make(struct tw_shape *shape, const struct tw_shape_options *options);

/* The part of a help text that describes the three options. */
extern const char TW_SHAPE_HELP[];

#endif
