/* SPDX-License-Identifier: MIT */
#include "top_json.h"

#include "json.h"

#include <string.h>

/* Adds a number, unless the source does not report it. */
static void put(json_t *object, const char *name, uint64_t value)
{
    if (value != ABSENT)
        json_object_set_new(object, name, json_number(value));
}

static void put_text(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(object, name, json_string(text));
}

/* Adds a rate; null if it is not known. */
static void put_rate(json_t *object, const char *name, double rate)
{
    json_object_set_new(object, name, rate < 0 ? json_null() : json_real(rate));
}

static json_t *named(const char *const *names, const uint64_t *values, int n)
{
    json_t *object = json_object();
    for (int i = 0; i < n; i++)
        put(object, names[i], values[i]);
    return object;
}

static json_t *rates(const struct history *history)
{
    json_t *object = json_object();
    for (int i = COUNT_LEVELS; i < COUNTS; i++)
        if (history->now.count[i] != ABSENT)
            put_rate(object, COUNT_NAMES[i],
                     reading_rate(history_before(history), &history->now, (enum count)i));
    return object;
}

static json_t *forecast(const struct reading *reading)
{
    json_t *array = json_array();
    for (int i = 0; i < READING_STEPS; i++)
        json_array_append_new(array, json_number(reading->forecast[i]));
    return json_pack("{s:i, s:b, s:o}", "step_ms", 1000, "exact", (int)reading->exact, "counts", array);
}

/* A queue of a server or of a file, which report some numbers alike. */
static json_t *queue(const struct queue_seen *seen, bool store)
{
    json_t *object = json_object();
    put(object, "db", store ? ABSENT : seen->db);
    json_put_bytes(object, "name", seen->whole);
    put(object, "tasks", seen->tasks);
    put(object, "waiting", store ? seen->waiting : ABSENT);
    put(object, "ready", seen->ready);
    put(object, "leased", seen->leased);
    put(object, "dead", seen->dead);
    put(object, "held", store ? ABSENT : seen->held);
    put(object, "delivered", store ? ABSENT : seen->delivered);
    put(object, "done", store ? ABSENT : seen->done);
    put(object, "died", store ? ABSENT : seen->died);
    if (store) /* null: none waits */
        json_object_set_new(object, "next_ms",
                            seen->next_ms == ABSENT ? json_null() : json_number(seen->next_ms));
    json_object_set_new(object, "paused", json_boolean(seen->paused));
    return object;
}

static json_t *list(const struct queue_seen *seen, size_t count, bool store)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, queue(&seen[i], store));
    return array;
}

/* Adds the largest queues, and the paused queues. */
static void put_lists(json_t *root, const struct reading *reading)
{
    bool store = reading_is_store(reading);
    json_object_set_new(root, "queues", list(reading->seen, reading->queues, store));
    if (reading->tells_pauses)
        json_object_set_new(root, "paused_queues", list(reading->paused, reading->pauses, store));
}

static json_t *all(const struct history *history)
{
    const struct reading *reading = &history->now;
    json_t *root = json_object();
    put_text(root, "source", reading->source);
    json_put_bytes(root, "address", tw_text(reading->given));
    put_text(root, "version", reading->version);
    put_text(root, "state", reading->state);
    put_text(root, "durability", reading->durability);
    put_text(root, "warning", reading->warning);
    put_text(root, "deliver", reading->deliver);
    if (reading->alone)
        json_put_bytes(root, "queue", tw_text(reading->asked));
    put(root, "up_s", reading->up_s);
    json_object_set_new(root, "counts", named(COUNT_NAMES, reading->count, COUNTS));
    json_object_set_new(root, "rates", rates(history));
    json_object_set_new(root, "forecast", forecast(reading));
    if (reading_is_store(reading)) {
        put_lists(root, reading);
        return root;
    }
    json_object_set_new(root, "recent_late_ns", named(LATE_NAMES, reading->recent, LATE_NUMBERS));
    json_object_set_new(root, "late_ns", named(LATE_NAMES, reading->all, LATE_NUMBERS));
    if (strcmp(reading->source, "redis") != 0)
        return root;
    json_object_set_new(root, "deferred", named(DEFERRED_NAMES, reading->deferred, DEFERREDS));
    put_lists(root, reading);
    return root;
}

bool top_json(const struct history *history, FILE *out)
{
    return json_line(all(history), out);
}
