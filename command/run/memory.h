/* SPDX-License-Identifier: MIT
 *
 * The engine of a run without a file.
 */
#ifndef COMMAND_MEMORY_H
#define COMMAND_MEMORY_H

#include "engine.h"

extern const struct engine engine_of_memory;

#endif
