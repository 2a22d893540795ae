/* SPDX-License-Identifier: MIT
 *
 * The list wheel behind calls, as a library has it.
 */
#include "list_wheel.inc.h"

extern const struct engine engine_list_wheel;
const struct engine engine_list_wheel = {
    .name = "list-wheel", .kind = KIND_REFERENCE, .object_size = sizeof(struct object), .run = run};
