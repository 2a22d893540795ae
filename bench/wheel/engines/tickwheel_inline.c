/* SPDX-License-Identifier: MIT
 *
 * Tickwheel with the short paths compiled into the loops (src/wheel/wheel.h). The difference to `tickwheel` is
 * the cost of the calls.
 */
#include <wheel/wheel.h>

#include "tickwheel.inc.h"

static struct tw_geometry engine_geometry(int variant)
{
    (void)variant;
    return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
}

extern const struct engine engine_tickwheel_inline;
const struct engine engine_tickwheel_inline = {
    .name = "tickwheel-inline", .kind = KIND_OURS, .object_size = sizeof(struct object), .run = run};
