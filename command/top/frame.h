/* SPDX-License-Identifier: MIT
 *
 * One frame of `tickwheel top`: a reading, what came before it, and how that is laid out on a sheet of any size.
 */
#ifndef TW_TOOLS_FRAME_H
#define TW_TOOLS_FRAME_H

#include "reading.h"
#include "sheet.h"

enum { TW_HISTORY = 512 };

/* What has been read so far. */
struct tw_history {
    struct tw_reading now, before;
    int readings;            /* 0, 1, or 2 for more */
    double rate[TW_HISTORY]; /* of firing, the latest first; negative: not known */
    int rates;
};

/* Takes note of a reading. */
void tw_history_add(struct tw_history *history, const struct tw_reading *reading);

/* The reading before the latest, or NULL. */
const struct tw_reading *tw_history_before(const struct tw_history *history);

/* Draws the latest reading. `notice`, unless empty, is shown at the top (a lost connection); `keys` at the bottom. */
void tw_frame_draw(struct tw_sheet *sheet, const struct tw_history *history, const char *notice,
                   const char *keys);

/* The rows that it takes to show all of it on a sheet of some width. */
int tw_frame_rows(const struct tw_history *history, int cols);

#endif
