/* SPDX-License-Identifier: MIT
 *
 * One frame of `tickwheel top`: a reading, what came before it, and how that is laid out on a sheet of any
 * size.
 */
#ifndef COMMAND_FRAME_H
#define COMMAND_FRAME_H

#include "reading.h"
#include "sheet.h"

enum { HISTORY = 512 };

/* What has been read so far. */
struct history {
    struct reading now, before;
    int readings;         /* 0, 1, or 2 for more */
    double rate[HISTORY]; /* of firing, the latest first; negative: not known */
    int rates;
};

/* Takes note of a reading. */
void history_add(struct history *history, const struct reading *reading);

/* The reading before the latest, or NULL. */
const struct reading *history_before(const struct history *history);

/* Draws the latest reading. `notice`, unless empty, is shown at the top (a lost connection); `keys` at the
 * bottom. */
void frame_draw(struct sheet *sheet, const struct history *history, const char *notice, const char *keys);

/* The rows that it takes to show all of it on a sheet of some width. */
int frame_rows(const struct history *history, int cols);

#endif
