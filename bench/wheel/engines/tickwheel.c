/* SPDX-License-Identifier: MIT
 *
 * Tickwheel with its presets. One set of loops serves all of them, because the geometry is run-time data.
 */
#include "tickwheel.inc.h"

enum { DEFAULT, SMALL, CLOCK, HASHED, GROWING };

static struct tw_geometry engine_geometry(int variant)
{
    switch (variant) {
    case SMALL:
        return (struct tw_geometry)TW_GEOMETRY_SMALL;
    case CLOCK:
        return (struct tw_geometry)TW_GEOMETRY_CLOCK;
    case HASHED:
        return (struct tw_geometry)TW_GEOMETRY_HASHED(65536);
    case GROWING:
        return (struct tw_geometry)TW_GEOMETRY_GROWING(256);
    default:
        return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    }
}

#define PRESET(symbol, title, id)                                                                              \
    extern const struct engine symbol;                                                                         \
    const struct engine symbol = {                                                                             \
        .name = title, .kind = KIND_OURS, .variant = id, .object_size = sizeof(struct object), .run = run}

PRESET(engine_tickwheel, "tickwheel", DEFAULT);
PRESET(engine_tickwheel_small, "tickwheel-small", SMALL);
PRESET(engine_tickwheel_clock, "tickwheel-clock", CLOCK);
PRESET(engine_tickwheel_hashed, "tickwheel-hashed", HASHED);
PRESET(engine_tickwheel_growing, "tickwheel-growing", GROWING);
