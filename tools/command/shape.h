/* SPDX-License-Identifier: MIT
 *
 * The shape of the wheel as the user asks for it: --preset, --geometry, --overflow.
 */
#ifndef TW_TOOLS_SHAPE_H
#define TW_TOOLS_SHAPE_H

#include <tickwheel/wheel.h>

enum { TW_SHAPE_NAME_SIZE = 160 };

/* What the options said; NULL where there was none. */
struct tw_shape_options {
    const char *preset, *geometry, *overflow;
};

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
