/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc has no name for it */
#endif

enum { LAST_MS = 1000, MOMENT_MS = 20, MS_NS = 1000000, STATUS_MAX = 512 };
enum { MOMENT_ENDS = SIGVTALRM }; /* not SIGALRM: `perl -e 'alarm 9; exec @ARGV'` sends that one */
enum { UNREAD = -1 };             /* an error that has no errno */

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER; /* held while a line waits for a reader */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;   /* held for a moment at most */
static bool live, shown;
static bool terminal[STDERR_FILENO + 1];       /* by descriptor */
static bool midline;                           /* the output of a command has not ended its line */
static _Atomic bool behind[STDERR_FILENO + 1]; /* by descriptor: takes no more in this round */
static _Atomic int error;
static int quit_fd = -1;               /* an eventfd that can be read after screen_quit() */
static _Atomic bool quitting, patient; /* patient: messages on standard error wait for a reader */

bool screen_live(void)
{
    return live;
}

static bool takes_more(int fd, int wait_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, wait_ms) > 0;
}

/* ---- one write ------------------------------------------------------------------------------------------- */

static void end_wait(int number)
{
    (void)number;
}

/* Sends this thread a signal after each moment. Returns false if the system has no timer left. */
static bool begin_moments(timer_t *timer)
{
    const struct timespec moment = {.tv_nsec = (long)MOMENT_MS * MS_NS};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = MOMENT_ENDS};
    event.sigev_notify_thread_id = gettid();
    return timer_create(CLOCK_MONOTONIC, &event, timer) == 0 &&
           timer_settime(*timer, 0, &(struct itimerspec){moment, moment}, NULL) == 0;
}

/* Writes to a terminal, and waits for a moment at most. To poll() it has room if it takes a byte, and write()
 * then waits until all bytes have gone. A signal ends that wait; without a timer for it, one byte goes.
 * O_NONBLOCK would be our shell's too, and a terminal that belongs to another user cannot be opened once
 * more. */
static ssize_t write_for_a_moment(int fd, const char *bytes, size_t size)
{
    sigset_t alarm, before;
    timer_t timer;
    sigemptyset(&alarm);
    sigaddset(&alarm, MOMENT_ENDS);
    pthread_sigmask(SIG_UNBLOCK, &alarm, &before);
    bool timed = begin_moments(&timer);
    ssize_t n = write(fd, bytes, timed ? size : 1);
    int saved = errno;
    if (timed)
        timer_delete(timer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return n;
}

/* Writes to an output that has room. Returns the size of the part that has gone, or -1. */
static ssize_t write_now(int fd, const char *bytes, size_t size)
{
    ssize_t n = terminal[fd] ? write_for_a_moment(fd, bytes, size) : write(fd, bytes, size);
    return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : n;
}

/* ---- the status line ------------------------------------------------------------------------------------- */

/* Whether a shell has its prompt on our terminal: we are in its background. */
static bool in_background(void)
{
    pid_t front = tcgetpgrp(STDERR_FILENO); /* -1: the terminal is not ours */
    return front >= 0 && front != getpgrp();
}

static void hide(void)
{
    if (shown && !in_background() && takes_more(STDERR_FILENO, 0))
        (void)!write_now(STDERR_FILENO, "\r\033[K", 4);
    shown = false;
}

void screen_hide(void)
{
    pthread_mutex_lock(&lock);
    hide();
    pthread_mutex_unlock(&lock);
}

/* ---- output that nobody reads ---------------------------------------------------------------------------- */

void screen_quit(void)
{
    uint64_t one = 1;
    quitting = true;
    (void)!write(quit_fd, &one, sizeof one);
}

bool screen_has_room(int fd)
{
    return quitting || (!behind[fd] && takes_more(fd, 0));
}

bool screen_can_tell(void)
{
    return takes_more(STDERR_FILENO, 0);
}

void screen_last_words(void)
{
    if (takes_more(STDERR_FILENO, LAST_MS))
        return;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* Waits until a write of PIPE_BUF bytes does not wait. Returns false if nobody reads, and the process is to
 * end. */
static bool wait_for_room(int fd)
{
    while (!takes_more(fd, 0)) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLOUT}, {.fd = quit_fd, .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[0].revents == 0 && fds[1].revents != 0)
            return takes_more(fd, LAST_MS);
    }
    return true;
}

/* Writes a part as far as there is room. Returns its size, 0 without room, or -1. */
static ssize_t write_part(int fd, const char *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    hide();
    ssize_t n = takes_more(fd, 0) ? write_now(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF) : 0;
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return n;
}

/* Whether writes without effect have gone on for long enough since the process is to end. *end_ms: when they
 * have; 0: there was none. */
static bool in_vain(uint64_t *end_ms)
{
    if (quitting && *end_ms == 0)
        *end_ms = monotonic_ms() + LAST_MS;
    return quitting && monotonic_ms() >= *end_ms;
}

/* Writes without stdio, which would try to write a failed line again at exit. Returns 0, an errno or UNREAD. */
static int write_all(int fd, struct tw_bytes bytes, bool wait)
{
    uint64_t end_ms = 0;
    for (size_t at = 0; at < bytes.size;) {
        if (wait && !wait_for_room(fd))
            return UNREAD;
        ssize_t n = write_part(fd, (const char *)bytes.data + at, bytes.size - at);
        if (n < 0)
            return errno;
        if (n == 0 && (!wait || in_vain(&end_ms)))
            return UNREAD;
        at += (size_t)n;
        end_ms = n > 0 ? 0 : end_ms;
    }
    return 0;
}

/* ---- beginning ------------------------------------------------------------------------------------------- */

/* A message waits for its reader here, and not in write(), where screen_quit() would not end the wait. The last
 * messages wait together for a second. */
static ssize_t write_errors(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    int failed = write_all(STDERR_FILENO, (struct tw_bytes){bytes, size}, patient);
    if (failed == UNREAD)
        patient = false;
    return failed == 0 ? (ssize_t)size : 0;
}

/* Without memory for it, stderr stays as it is. */
static void route_errors(void)
{
    FILE *errors = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_errors});
    if (errors == NULL)
        return;
    setvbuf(errors, NULL, _IONBF, 0);
    stderr = errors;
}

void screen_begin(bool status, bool commands, bool wait)
{
    quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigaction(MOMENT_ENDS, &(struct sigaction){.sa_handler = end_wait}, NULL);
    signal(SIGTTOU, SIG_IGN); /* a job in the background of a terminal writes there, as its tasks go on */
    terminal[STDOUT_FILENO] = isatty(STDOUT_FILENO);
    terminal[STDERR_FILENO] = isatty(STDERR_FILENO);
    patient = wait;
    route_errors();
    live = status && terminal[STDERR_FILENO] && !(commands && terminal[STDOUT_FILENO]);
}

void screen_show(const char *text)
{
    char line[STATUS_MAX];
    pthread_mutex_lock(&lock);
    int size = snprintf(line, sizeof line, "%s\r\033[K%s", midline ? "\n" : "", text);
    if (!in_background() && screen_can_tell()) {
        (void)!write_now(STDERR_FILENO, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
        shown = true;
        midline = false;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- output ---------------------------------------------------------------------------------------------- */

bool screen_print(struct tw_bytes line)
{
    pthread_mutex_lock(&output);
    if (error == 0)
        error = write_all(STDOUT_FILENO, line, true);
    pthread_mutex_unlock(&output);
    return error == 0;
}

int screen_write(struct tw_bytes bytes)
{
    pthread_mutex_lock(&output);
    int failed = write_all(STDOUT_FILENO, bytes, true);
    pthread_mutex_unlock(&output);
    return failed;
}

void screen_next_round(void)
{
    behind[STDOUT_FILENO] = behind[STDERR_FILENO] = false;
}

size_t screen_pass(int fd, struct tw_bytes bytes)
{
    const char *text = bytes.data;
    ssize_t n = behind[fd] ? 0 : write_part(fd, text, bytes.size);
    behind[fd] = n >= 0 && (size_t)n < bytes.size;
    pthread_mutex_lock(&lock);
    midline = n > 0 ? text[n - 1] != '\n' : midline;
    pthread_mutex_unlock(&lock);
    return n < 0 || quitting ? bytes.size : (size_t)n;
}

const char *screen_reason(int number)
{
    return number == UNREAD ? "nobody reads it" : strerror(number);
}

int screen_error(void)
{
    return error;
}
