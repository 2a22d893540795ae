/* SPDX-License-Identifier: MIT
 *
 * GLib: a source with a ready time, in microseconds on the wheel's clock.
 *
 * A ready time that has passed makes the source ready in each iteration, with the other sources of its
 * priority. Another thread may set the ready time, and this wakes the loop: an executor needs no more. The
 * source is not dispatched inside its own callback. If it were, GLib would wake the loop once more for each
 * time that is set.
 */
#include <tickwheel/loop_glib.h>

#include <base/assert.h>
#include <glib.h>

/* ---- a wheel --------------------------------------------------------------------------------------------- */

struct wheel_source {
    GSource source;
    struct tw_loop *loop;
};

static gboolean wheel_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    (void)callback;
    (void)data;
    tw_loop_turn(((struct wheel_source *)source)->loop);
    return G_SOURCE_CONTINUE;
}

static int wheel_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    (void)now_ns;
    enum { NS_PER_US = 1000 };
    uint64_t at_us = at_ns / NS_PER_US + (at_ns % NS_PER_US != 0);
    g_source_set_ready_time(arg, at_ns == UINT64_MAX ? -1 : (gint64)at_us);
    return 0;
}

static void source_close(void *arg)
{
    g_source_destroy(arg);
    g_source_unref(arg);
}

int tw_loop_glib_new(struct tw_loop **made, GMainContext *context, struct tw_wheel *wheel,
                     const struct tw_loop_options *options)
{
    static GSourceFuncs calls = {.dispatch = wheel_dispatch};
    static const struct tw_loop_driver driver = {.arm = wheel_arm, .close = source_close};
    TW_ASSERT(made != NULL);
    GSource *source = g_source_new(&calls, sizeof(struct wheel_source));
    struct wheel_source *own = (struct wheel_source *)source;
    g_source_set_name(source, "tickwheel wheel");
    int error = tw_loop_new(&own->loop, wheel, options, &driver, source);
    if (error != 0) {
        source_close(source);
        return error;
    }
    g_source_attach(source, context);
    *made = own->loop;
    return 0;
}

/* ---- a scheduler ----------------------------------------------------------------------------------------- */

struct executor_source {
    GSource source;
    struct tw_executor *executor;
};

static gboolean executor_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    (void)callback;
    (void)data;
    tw_executor_turn(((struct executor_source *)source)->executor);
    return G_SOURCE_CONTINUE;
}

static void executor_wake(void *arg)
{
    g_source_set_ready_time(arg, 0);
}

static void executor_clear(void *arg)
{
    g_source_set_ready_time(arg, -1);
}

int tw_executor_glib_new(struct tw_executor **made, GMainContext *context, uint32_t budget)
{
    static GSourceFuncs calls = {.dispatch = executor_dispatch};
    static const struct tw_executor_driver driver = {
        .wake = executor_wake, .clear = executor_clear, .close = source_close};
    TW_ASSERT(made != NULL);
    GSource *source = g_source_new(&calls, sizeof(struct executor_source));
    struct executor_source *own = (struct executor_source *)source;
    g_source_set_name(source, "tickwheel executor");
    int error = tw_executor_new(&own->executor, budget, &driver, source);
    if (error != 0) {
        source_close(source);
        return error;
    }
    g_source_attach(source, context);
    *made = own->executor;
    return 0;
}
