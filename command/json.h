/* SPDX-License-Identifier: MIT
 *
 * JSON as the commands write it: names and payloads are exact, and a terminal obeys no byte of it.
 */
#ifndef COMMAND_JSON_H
#define COMMAND_JSON_H

#include <tickwheel/task.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A number, or 2^63-1 in place of a larger one, which jansson does not have. */
json_t *json_number(uint64_t value);

/* Adds bytes as a text, or with a name that ends in _hex in hexadecimal, if they are not UTF-8. Data of
 * NULL adds null. */
void json_put_bytes(json_t *object, const char *name, struct tw_bytes bytes);

/* Writes the object as a line of compact JSON, and releases it. Returns false if there is no memory. */
bool json_line(json_t *object, FILE *out);

#endif
