/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool live, shown;
static bool midline; /* the output of a command has not ended its line */
static _Atomic int error;

/* Opens /dev/null in place of a closed descriptor: standard input for writing, the outputs for reading. So
 * using the descriptor fails, as it should. */
static void hold_descriptor(int fd, int flags)
{
    if (fcntl(fd, F_GETFD) < 0)
        (void)!open("/dev/null", flags);
}

void screen_begin(bool status, bool commands)
{
    hold_descriptor(STDIN_FILENO, O_WRONLY);
    hold_descriptor(STDOUT_FILENO, O_RDONLY);
    hold_descriptor(STDERR_FILENO, O_RDONLY);
    live = status && isatty(STDERR_FILENO) && !(commands && isatty(STDOUT_FILENO));
}

bool screen_live(void)
{
    return live;
}

static void hide(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}

void screen_hide(void)
{
    pthread_mutex_lock(&lock);
    hide();
    pthread_mutex_unlock(&lock);
}

void screen_show(const char *text)
{
    pthread_mutex_lock(&lock);
    fprintf(stderr, "%s\r\033[K%s", midline ? "\n" : "", text);
    shown = true;
    midline = false;
    pthread_mutex_unlock(&lock);
}

/* Writes without stdio, which would try to write a failed line again at exit. Returns 0 or an errno. */
static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return errno;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

bool screen_print(const char *line, size_t size)
{
    pthread_mutex_lock(&lock);
    hide();
    if (error == 0)
        error = write_all(STDOUT_FILENO, line, size);
    pthread_mutex_unlock(&lock);
    return error == 0;
}

void screen_pass(int fd, const char *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    hide();
    (void)write_all(fd, bytes, size);
    midline = size > 0 && bytes[size - 1] != '\n';
    pthread_mutex_unlock(&lock);
}

int screen_error(void)
{
    return error;
}
