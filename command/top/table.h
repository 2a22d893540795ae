/* SPDX-License-Identifier: MIT
 *
 * The table at the foot of a frame: the queues of a server or a file. The paused ones come first, so that
 * nobody overlooks a pause, then the largest.
 */
#ifndef COMMAND_TABLE_H
#define COMMAND_TABLE_H

#include "page.h"

/* Returns the rows of the table, including its heading; 0 if the reading has none. */
int table_rows(const struct reading *reading);

/* Puts as many rows of the table as the page has for it. */
void table_put(struct page *page);

#endif
