/* SPDX-License-Identifier: MIT
 *
 * Memory of the C library: what holds in the tests, and in the server until the module is loaded.
 */
#include "memory.h"

#include <malloc.h>
#include <stdlib.h>

struct tw__memory tw__memory = {malloc, realloc, free, malloc_usable_size};
