/* SPDX-License-Identifier: MIT
 *
 * The list wheel compiled into the loops, for the comparison with tickwheel-inline.
 */
#define ENGINE_CALL inline __attribute__((always_inline))
#include "list_wheel.inc.h"

extern const struct engine engine_list_wheel_inline;
const struct engine engine_list_wheel_inline = {
    .name = "list-wheel-inline", .kind = KIND_REFERENCE, .object_size = sizeof(struct object), .run = run};
