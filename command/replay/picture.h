/* SPDX-License-Identifier: MIT
 *
 * A view of a wheel as an SVG picture.
 */
#ifndef TW_TOOLS_PICTURE_H
#define TW_TOOLS_PICTURE_H

#include "trace.h"
#include "view.h"

#include <stdio.h>

struct tw_picture {
    const struct tw_view *view;
    const struct tw_trace *trace;
    const char *shape; /* the wheel's name, for people */
};

/* Writes the picture. The same view gives the same bytes. */
void tw_picture_write(const struct tw_picture *picture, FILE *out);

#endif
