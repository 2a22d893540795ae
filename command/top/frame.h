/* SPDX-License-Identifier: MIT
 *
 * One frame of `tickwheel top`: lays out the latest reading, and the history before it, on a sheet of any size.
 */
#ifndef COMMAND_FRAME_H
#define COMMAND_FRAME_H

#include "reading.h"
#include "sheet.h"

enum { HISTORY = 512 };

/* The readings so far: the latest two, and the rates at which tasks came due. */
struct history {
    struct reading now, before;
    int readings;         /* number of readings; 2 means two or more */
    double rate[HISTORY]; /* of tasks that came due, the latest first; negative: not known */
    int rates;
};

/* Adds a reading to the history. */
void history_add(struct history *history, const struct reading *reading);

/* Returns the reading before the latest, or NULL. */
const struct reading *history_before(const struct history *history);

/* Draws the latest reading on `cols` columns. On a sheet with more columns a warning goes on behind them.
 * Unless empty, `notice` is shown at the top (for example, that the connection is lost), and `keys` at the
 * bottom. */
void frame_draw(struct sheet *sheet, const struct history *history, int cols, const char *notice,
                const char *keys);

/* Returns the rows that a whole frame takes on `cols` columns, and the columns of a sheet that has room for
 * its whole warning too. */
int frame_rows(const struct history *history, int cols);
int frame_cols(const struct history *history, int cols);

#endif
