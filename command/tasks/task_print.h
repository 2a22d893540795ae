/* SPDX-License-Identifier: MIT
 *
 * A task as a row of a table, and as JSON.
 */
#ifndef COMMAND_TASK_PRINT_H
#define COMMAND_TASK_PRINT_H

#include <tickwheel/store.h>

#include <jansson.h>
#include <stdio.h>

/* Writes the heading of the table of a queue; `dead`: of dead tasks. */
void task_print_head(const char *queue, bool dead, FILE *out);

/* Writes a task as a row. `now_ms` is the time now. */
void task_print_row(const struct tw_store_task *task, uint64_t now_ms, FILE *out);

/* Writes a task as a line of JSON. Returns false if there is no memory. */
bool task_print_json(const struct tw_store_task *task, FILE *out);

/* Adds bytes as a text, or with a name that ends in _hex in hexadecimal, if they are not UTF-8. */
void json_put_bytes(json_t *object, const char *name, const void *bytes, size_t size);

/* Writes the object as a line of compact JSON, and releases it. Returns false if there is no memory. */
bool json_line(json_t *object, FILE *out);

/* A time as text: "30 min", "12 s ago". */
struct figure;
struct figure figure_until(uint64_t ms, uint64_t now_ms);

#endif
