/* SPDX-License-Identifier: MIT
 *
 * A view of a wheel as an SVG picture.
 */
#ifndef COMMAND_PICTURE_H
#define COMMAND_PICTURE_H

#include "record.h"
#include "view.h"

#include <stdio.h>

struct picture {
    const struct view *view;
    const struct trace *trace;
    const char *shape; /* the wheel's name, for people */
};

/* Writes the picture. The same view gives the same bytes. */
void picture_write(const struct picture *picture, FILE *out);

#endif
