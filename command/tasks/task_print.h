/* SPDX-License-Identifier: MIT
 *
 * A task as a row of a table, and as JSON.
 */
#ifndef COMMAND_TASK_PRINT_H
#define COMMAND_TASK_PRINT_H

#include <tickwheel/store.h>

#include <stdbool.h>
#include <stdio.h>

/* Writes the heading of the table of a queue; `dead`: of dead tasks. */
void task_print_head(const char *queue, bool dead, FILE *out);

/* Writes a task as a row. `now_ms` is the time now. */
void task_print_row(const struct tw_store_task *task, uint64_t now_ms, FILE *out);

/* Writes a task as a line of JSON. Returns false if there is no memory. */
bool task_print_json(const struct tw_store_task *task, FILE *out);

/* A time as text: "30 min", "12 s ago". */
struct figure;
struct figure figure_until(uint64_t ms, uint64_t now_ms);

#endif
