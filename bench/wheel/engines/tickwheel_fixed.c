/* SPDX-License-Identifier: MIT
 *
 * Tickwheel with the default geometry compiled in: what run-time geometry costs is the difference.
 */
#include "tickwheel.inc.h"

static struct tw_geometry engine_geometry(int variant)
{
    (void)variant;
    return TW_DEFAULT;
}

extern const struct engine engine_tickwheel_fixed;
const struct engine engine_tickwheel_fixed = {
    .name = "tickwheel-fixed", .kind = KIND_OURS, .object_size = sizeof(struct object), .run = run};
