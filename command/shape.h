/* SPDX-License-Identifier: MIT
 *
 * The shape of the wheel from the options --preset, --geometry and --overflow.
 */
#ifndef COMMAND_SHAPE_H
#define COMMAND_SHAPE_H

#include "command.h"

#include <tickwheel/wheel.h>

enum { SHAPE_NAME_SIZE = 160 };

/* The values of the three options; NULL for an option that was not given. */
struct shape_options {
    const char *preset, *geometry, *overflow;
};

/* The names of an enum tw_overflow. */
extern const char *const SHAPE_OVERFLOWS[];

/* Adds the three options to a table. */
void shape_options_add(struct option_table *table, struct shape_options *options);

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
