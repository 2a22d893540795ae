/* SPDX-License-Identifier: MIT */
#include "shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_SIZE = 48, MESSAGE_SIZE = 200 };

const char SHAPE_HELP[] = "  --preset NAME      shape: default, small, clock, simple:N, hashed:N, growing:N\n"
                          "                     (N slots in the ring, 2 to 262144)\n"
                          "  --geometry LEVELS  a shape of your own, from the lowest level up:\n"
                          "                     SLOTS/STEP,SLOTS/STEP,...,SLOTS where STEP slots of a\n"
                          "                     level make one slot of the next level. A last \"...\"\n"
                          "                     repeats the level before it until the wheel spans 2^64\n"
                          "                     ticks. Example: 1024/512,256/128,...\n"
                          "  --overflow HOW     for a timer beyond the top level: reject, rounds or grow\n"
                          "                     (default: that of the preset; with --geometry, rounds)\n";

const char *const SHAPE_OVERFLOWS[] = {
    [TW_OVERFLOW_REJECT] = "reject", [TW_OVERFLOW_ROUNDS] = "rounds", [TW_OVERFLOW_GROW] = "grow"};

static const struct preset {
    const char *name;
    bool sized; /* the user gives the slots of the ring, which are 0 here */
    struct tw_geometry geometry;
} PRESETS[] = {
    {"default", false, TW_GEOMETRY_DEFAULT}, {"small", false, TW_GEOMETRY_SMALL},
    {"clock", false, TW_GEOMETRY_CLOCK},     {"simple", true, TW_GEOMETRY_SIMPLE(0)},
    {"hashed", true, TW_GEOMETRY_HASHED(0)}, {"growing", true, TW_GEOMETRY_GROWING(0)},
};

/* ---- presets -------------------------------------------------------------------------------------------- */

static bool make_preset(const struct preset *preset, const char *text, struct tw_geometry *geometry)
{
    const char *colon = strchr(text, ':');
    uint64_t slots;
    if (!preset->sized && colon != NULL) {
        complain("--preset %s: the preset %s takes no number", text, preset->name);
        return false;
    }
    *geometry = preset->geometry;
    if (!preset->sized)
        return true;
    if (colon == NULL || !number_parse(colon + 1, UINT32_MAX, &slots)) {
        complain("--preset %s: expected a number of slots from 2 to 262144, as in %s:512", text, preset->name);
        return false;
    }
    geometry->level[0].slots = (uint32_t)slots;
    return true;
}

static bool parse_preset(const char *text, struct tw_geometry *geometry)
{
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof PRESETS / sizeof PRESETS[0]; i++)
        if (strlen(PRESETS[i].name) == length && memcmp(PRESETS[i].name, text, length) == 0)
            return make_preset(&PRESETS[i], text, geometry);
    complain("--preset %s: expected default, small, clock, simple:N, hashed:N or growing:N", text);
    return false;
}

/* ---- geometries ----------------------------------------------------------------------------------------- */

/* A geometry being read. `step` is the STEP of the last level read, 0 if that level has none. */
struct geometry_reader {
    const char *text;
    struct tw_geometry *geometry;
    uint64_t step;
};

static bool wrong_level(const struct geometry_reader *r, const char *problem)
{
    complain("--geometry %s: level %u: %s", r->text, r->geometry->levels, problem);
    return false;
}

/* Puts a level on top of the levels read so far. A number of slots beyond the valid range stays beyond it, so
 * that tw_geometry_check() reports it. */
static bool push_level(struct geometry_reader *r, uint64_t slots, uint64_t step)
{
    struct tw_geometry *g = r->geometry;
    uint64_t span = 1;
    if (g->levels == TW_GEOMETRY_LEVELS_MAX)
        return wrong_level(r, "a wheel has at most 64 levels");
    if (g->levels > 0 && r->step == 0)
        return wrong_level(r,
                           "the level below it needs a STEP, as in 64/32; only the last level may have none");
    if (g->levels > 0 && __builtin_mul_overflow(g->level[g->levels - 1].span, r->step, &span))
        return wrong_level(r, "a slot would span more than 2^64 ticks");
    g->level[g->levels].slots = slots > UINT32_MAX ? UINT32_MAX : (uint32_t)slots;
    g->level[g->levels].span = span;
    g->levels++;
    r->step = step;
    return true;
}

/* Repeats the last level until the top level spans 2^64 ticks. */
static bool repeat_level(struct geometry_reader *r)
{
    struct tw_geometry *g = r->geometry;
    if (g->levels == 0 || r->step < 2)
        return wrong_level(r, "\"...\" repeats the level before it, which needs a STEP of at least 2");
    const struct tw_level *top = &g->level[g->levels - 1];
    for (uint64_t all; !__builtin_mul_overflow(top->span, top->slots, &all); top++)
        if (!push_level(r, top->slots, r->step))
            return false;
    return true;
}

static bool read_level(struct geometry_reader *r, char *field)
{
    char *slash = strchr(field, '/');
    uint64_t slots, step = 0;
    if (slash != NULL)
        *slash = '\0';
    if (!number_parse(field, UINT64_MAX, &slots) ||
        (slash != NULL && (!number_parse(slash + 1, UINT64_MAX, &step) || step == 0)))
        return wrong_level(r, "expected SLOTS/STEP, as in 64/32");
    return push_level(r, slots, step);
}

static bool read_levels(struct geometry_reader *r)
{
    char field[FIELD_SIZE];
    for (const char *at = r->text;; at++) {
        size_t length = strcspn(at, ",");
        if (length >= sizeof field)
            return wrong_level(r, "expected SLOTS/STEP, as in 64/32");
        memcpy(field, at, length);
        field[length] = '\0';
        at += length;
        if (strcmp(field, "...") == 0)
            return *at == '\0' ? repeat_level(r) : wrong_level(r, "\"...\" must come last");
        if (!read_level(r, field))
            return false;
        if (*at == '\0')
            return true;
    }
}

static bool parse_geometry(const char *text, struct tw_geometry *geometry)
{
    struct geometry_reader reading = {.text = text, .geometry = geometry, .step = 0};
    geometry->levels = 0;
    geometry->overflow = TW_OVERFLOW_ROUNDS;
    return read_levels(&reading);
}

/* ---- options --------------------------------------------------------------------------------------------- */

static bool parse_overflow(const char *text, struct tw_geometry *geometry)
{
    for (int i = TW_OVERFLOW_REJECT; i <= TW_OVERFLOW_GROW; i++)
        if (strcmp(text, SHAPE_OVERFLOWS[i]) == 0) {
            geometry->overflow = (enum tw_overflow)i;
            return true;
        }
    complain("--overflow %s: expected reject, rounds or grow", text);
    return false;
}

static void name_shape(struct shape *shape, const struct shape_options *options)
{
    const char *base = options->preset != NULL ? options->preset : "default";
    const char *how = options->overflow;
    snprintf(shape->name, sizeof shape->name, "%s%s%s%s", options->geometry != NULL ? "geometry " : "",
             options->geometry != NULL ? options->geometry : base, how != NULL ? ", overflow " : "",
             how != NULL ? how : "");
}

void shape_options_add(struct option_table *table, struct shape_options *options)
{
    options_text(table, "--preset", &options->preset);
    options_text(table, "--geometry", &options->geometry);
    options_text(table, "--overflow", &options->overflow);
}

int shape_make(struct shape *shape, const struct shape_options *options)
{
    struct tw_geometry *geometry = &shape->geometry;
    char message[MESSAGE_SIZE];
    bool good = true;
    if (options->preset != NULL && options->geometry != NULL) {
        complain("--preset and --geometry both give the shape of the wheel: choose one");
        return COMMAND_INPUT;
    }
    if (options->geometry != NULL)
        good = parse_geometry(options->geometry, geometry);
    else
        good = parse_preset(options->preset != NULL ? options->preset : "default", geometry);
    if (!good || (options->overflow != NULL && !parse_overflow(options->overflow, geometry)))
        return COMMAND_INPUT;
    name_shape(shape, options);
    if (tw_geometry_check(geometry, message, sizeof message) == 0)
        return COMMAND_GOOD;
    complain("the wheel cannot have the shape \"%s\": %s", shape->name, message);
    return COMMAND_INPUT;
}
