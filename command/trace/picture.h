/* SPDX-License-Identifier: MIT
 *
 * A view of a wheel as an SVG picture.
 */
#ifndef COMMAND_PICTURE_H
#define COMMAND_PICTURE_H

#include "record.h"
#include "view.h"

#include <stdio.h>

/* Writes the picture; `shape` is the wheel's name, for people. The same view gives the same bytes. */
void picture_write(const struct view *view, const struct trace *trace, const char *shape, FILE *out);

#endif
