/* SPDX-License-Identifier: MIT
 *
 * GLib: a main loop in a context of its own.
 */
#include "kind.h"

#include <glib-unix.h>
#include <glib.h>
#include <tickwheel/loop_glib.h>

static GMainContext *context;
static GMainLoop *main_loop; /* the innermost main loop */
static GSource *poll_source;
static void (*on_readable)(void);

static void *base_open(void)
{
    return context = g_main_context_new();
}

static void base_close(void *base)
{
    g_main_context_unref(base);
}

static int attach(struct tw_loop **loop, void *base, struct tw_wheel *wheel,
                  const struct tw_loop_options *options)
{
    return tw_loop_glib_new(loop, base, wheel, options);
}

static int executor(struct tw_executor **made, void *base, uint32_t budget)
{
    return tw_executor_glib_new(made, base, budget);
}

static void owner(struct tw_loop *loop, struct tw_executor *of)
{
    (void)loop;
    (void)of;
}

static gboolean on_fd(gint fd, GIOCondition condition, gpointer data)
{
    (void)fd;
    (void)condition;
    (void)data;
    on_readable();
    return G_SOURCE_CONTINUE;
}

static void watch(void *base, int fd, void (*readable)(void))
{
    on_readable = readable;
    poll_source = g_unix_fd_source_new(fd, G_IO_IN);
    g_source_set_callback(poll_source, (GSourceFunc)(void (*)(void))on_fd, NULL, NULL);
    g_source_set_priority(poll_source, G_PRIORITY_DEFAULT);
    g_source_attach(poll_source, base);
}

static void unwatch(void *base)
{
    (void)base;
    g_source_destroy(poll_source);
    g_source_unref(poll_source);
}

static void run(void *base)
{
    GMainLoop *outer = main_loop;
    main_loop = g_main_loop_new(base, FALSE);
    g_main_loop_run(main_loop);
    g_main_loop_unref(main_loop);
    main_loop = outer;
}

static void stop(void *base)
{
    (void)base;
    g_main_loop_quit(main_loop);
}

static void *forked(void *base)
{
    (void)base;
    return base_open();
}

const struct kind kind = {"GLib", false,   false, base_open, base_close, attach, executor, owner,
                          watch,  unwatch, run,   stop,      NULL,       NULL,   forked};
