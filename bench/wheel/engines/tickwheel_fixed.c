/* SPDX-License-Identifier: MIT
 *
 * Tickwheel with the default geometry compiled in. The difference is the cost of a run-time geometry.
 */
#include "tickwheel.inc.h"

static struct tw_geometry engine_geometry(int variant)
{
    (void)variant;
    return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
}

extern const struct engine engine_tickwheel_fixed;
const struct engine engine_tickwheel_fixed = {
    .name = "tickwheel-fixed", .kind = KIND_OURS, .object_size = sizeof(struct object), .run = run};
