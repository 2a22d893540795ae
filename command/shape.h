/* SPDX-License-Identifier: MIT
 *
 * The shape of the wheel from the options --preset, --geometry and --overflow.
 */
#ifndef COMMAND_SHAPE_H
#define COMMAND_SHAPE_H

#include <tickwheel/wheel.h>

#include <getopt.h>
#include <stdbool.h>

enum { SHAPE_NAME_SIZE = 160 };

/* The values of the three options; NULL for an option that was not given. */
struct shape_options {
    const char *preset, *geometry, *overflow;
};

/* The codes of the three options for getopt_long(), and their lines for its table. */
enum { SHAPE_PRESET = 0x1000, SHAPE_GEOMETRY, SHAPE_OVERFLOW };
/* clang-format off */
#define SHAPE_OPTIONS                                      \
    {"preset", required_argument, NULL, SHAPE_PRESET},     \
    {"geometry", required_argument, NULL, SHAPE_GEOMETRY}, \
    {"overflow", required_argument, NULL, SHAPE_OVERFLOW}
/* clang-format on */

/* Takes the option, whose value is in optarg. Returns false if it is not one of the three. */
bool shape_take(struct shape_options *options, int code);

struct shape {
    struct tw_geometry geometry;
    char name[SHAPE_NAME_SIZE]; /* for people: "default", "hashed:512", "geometry 64/32,32" */
};

/* Makes the shape; without options, that of the default preset.
 * Returns: an exit status; unless it is COMMAND_GOOD, an error has been printed. */
int shape_make(struct shape *shape, const struct shape_options *options);

/* The part of a help text that describes the three options. */
extern const char SHAPE_HELP[];

#endif
