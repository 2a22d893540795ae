/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 40 };
static const double PATIENCE = 0.3; /* seconds before the bar appears */
static const double REFRESH = 0.1;  /* seconds between two updates of the bar */

static struct {
    const char *what;
    double started, shown; /* seconds of the monotonic clock; `started` is 0 until the first begin */
    bool terminal, visible;
} bar;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(const char *what)
{
    if (bar.started == 0.0) {
        bar.started = seconds();
        bar.terminal = isatty(STDERR_FILENO);
    }
    bar.what = what;
}

static void draw(double done)
{
    char marks[WIDTH + 1];
    int full = (int)(done * WIDTH + 0.5);
    for (int i = 0; i < WIDTH; i++)
        marks[i] = i < full ? '#' : '.';
    marks[WIDTH] = '\0';
    fprintf(stderr, "\r%-10s [%s] %3d%%", bar.what, marks, (int)(done * 100));
}

void progress_show(double done)
{
    if (!bar.terminal)
        return;
    double now = seconds();
    if (now - bar.started < PATIENCE || now - bar.shown < REFRESH)
        return;
    bar.shown = now;
    bar.visible = true;
    if (done < 0)
        fprintf(stderr, "\r%-10s %.0f s", bar.what, now - bar.started);
    else
        draw(done > 1 ? 1 : done);
}

void progress_end(void)
{
    /* The escape sequence erases to the end of the line. `visible` is set only on a terminal. */
    if (bar.visible)
        fputs("\r\033[K", stderr);
    bar.visible = false;
}
