/* SPDX-License-Identifier: MIT */
#include "child.h"

#include "screen.h"

#include <base/utf8.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT, ERRORS, PARTS = 1024, CHARACTER = 4 };

/* ---- the outputs ----------------------------------------------------------------------------------------- */

static void keep_tail(struct child *child, struct tw_bytes bytes)
{
    const char *text = bytes.data;
    size_t from = bytes.size > CHILD_TAIL ? bytes.size - CHILD_TAIL : 0;
    child->errors += from;
    for (size_t i = from; i < bytes.size; i++)
        child->tail[child->errors++ % CHILD_TAIL] = text[i];
}

static void shut_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void shut(struct child *child, int which)
{
    shut_end(&child->pipe[which]);
    shut_end(&child->writer[which]);
}

/* Where an output goes on to. */
static int ours(int which)
{
    return which == ERRORS ? STDERR_FILENO : STDOUT_FILENO;
}

/* Reads a part of an output. Returns false if nothing has arrived, or the output has ended. */
static bool read_part(struct child *child, int which)
{
    struct child_part *part = &child->part[which];
    ssize_t size = read(child->pipe[which], part->bytes, sizeof part->bytes);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        shut(child, which);
    if (size <= 0)
        return false;
    part->from = 0;
    part->size = (size_t)size;
    if (which == ERRORS)
        keep_tail(child, (struct tw_bytes){part->bytes, part->size});
    return true;
}

/* Passes on as much of a part of an output as our own takes. Returns false if none has gone. */
static bool pass_part(struct child *child, int which)
{
    struct child_part *part = &child->part[which];
    if (part->size == 0 && !read_part(child, which))
        return false;
    size_t gone = screen_pass(ours(which), (struct tw_bytes){part->bytes + part->from, part->size});
    part->from += gone;
    part->size -= gone;
    return gone > 0;
}

/* Whether the rest of a part is left, or an output that has not ended has more bytes. */
static bool has_more(const struct child *child, int which)
{
    struct pollfd there = {.fd = child->pipe[which], .events = POLLIN};
    return child->part[which].size > 0 ||
           (there.fd >= 0 && poll(&there, 1, 0) > 0 && (there.revents & POLLIN) != 0);
}

/* Passes on the parts that are there. Returns false if some are left, because our own output has no room. */
static bool pass_all(struct child *child, int which)
{
    for (int parts = 0; parts < PARTS && has_more(child, which); parts++)
        if (!screen_has_room(ours(which)) || (!pass_part(child, which) && child->part[which].size > 0))
            return false;
    return child->part[which].size == 0;
}

/* The descriptor for which an output waits: our own while a part of it is left, or ours has no `room`. -1:
 * none. */
static struct pollfd awaited(const struct child *child, int which, bool room)
{
    if (child->part[which].size > 0 || (child->pipe[which] >= 0 && !room))
        return (struct pollfd){.fd = ours(which), .events = POLLOUT};
    return (struct pollfd){.fd = child->pipe[which], .events = POLLIN};
}

size_t child_watch(struct child *child, const bool room[2], struct pollfd *fds)
{
    size_t count = 0;
    for (int which = OUTPUT; which <= ERRORS && child->process != 0; which++) {
        if (child->part[which].size > 0 && screen_has_room(ours(which)))
            pass_part(child, which);
        fds[count] = awaited(child, which, room[which]);
        count += fds[count].fd >= 0;
    }
    return count;
}

void child_pass(struct child *child, int fd)
{
    for (int which = OUTPUT; which <= ERRORS && child->process != 0; which++)
        if (child->pipe[which] == fd)
            pass_part(child, which);
}

/* ---- the process ----------------------------------------------------------------------------------------- */

/* Makes a pipe for an output. We do not wait for its bytes; the command's own end waits as usual. */
static bool open_pipe(struct child *child, int which)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child->pipe[which] = ends[0];
    child->writer[which] = ends[1];
    return true;
}

int child_start(struct child *child, struct job *job, bool output, bool hold)
{
    child->errors = 0;
    child->part[OUTPUT].size = child->part[ERRORS].size = 0;
    child->pipe[OUTPUT] = child->pipe[ERRORS] = child->writer[OUTPUT] = child->writer[ERRORS] = -1;
    bool good = open_pipe(child, ERRORS) && (!output || open_pipe(child, OUTPUT));
    job->output = output ? child->writer[OUTPUT] : 0;
    job->errors = child->writer[ERRORS];
    int error = good ? job_start(job, &child->process) : errno;
    for (int which = OUTPUT; which <= ERRORS; which++)
        if (error != 0)
            shut(child, which);
        else if (!hold)
            shut_end(&child->writer[which]);
    if (error != 0)
        child->process = 0;
    return error;
}

/* A process that the command has left behind may hold the pipes open, so only the bytes that are there now are
 * read. The system keeps the ended command until they have gone on. */
enum child_state child_look(struct child *child, bool leave, int *status)
{
    siginfo_t ended = {.si_pid = 0};
    if (child->process == 0 || waitid(P_PID, (id_t)child->process, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid == 0)
        return CHILD_RUNS;
    if (!leave)
        child_signal(child, SIGTERM); /* until it is reaped, its group is no other command's */
    for (int which = OUTPUT; which <= ERRORS; which++)
        if (!pass_all(child, which))
            return CHILD_WAITS;
    waitpid(child->process, status, 0);
    shut(child, OUTPUT);
    shut(child, ERRORS);
    child->process = 0;
    return CHILD_ENDED;
}

void child_signal(const struct child *child, int number)
{
    if (child->process > 0)
        kill(-child->process, number);
}

/* ---- the error ------------------------------------------------------------------------------------------- */

/* Copies the tail without the white space at its end. Returns its size; *cut: its beginning is missing. */
static size_t copy_tail(const struct child *child, char tail[CHILD_TAIL], bool *cut)
{
    size_t size = child->errors < CHILD_TAIL ? (size_t)child->errors : CHILD_TAIL;
    *cut = child->errors > CHILD_TAIL;
    for (size_t i = 0; i < size; i++)
        tail[i] = child->tail[(child->errors - size + i) % CHILD_TAIL];
    while (size > 0 && strchr(" \t\r\n", tail[size - 1]) != NULL && tail[size - 1] != '\0')
        size--;
    return size;
}

size_t child_error(const struct child *child, const char *ended, char error[TW__TASK_ERROR_MAX + 1])
{
    char tail[CHILD_TAIL];
    bool cut;
    size_t head = strlen(ended), size = copy_tail(child, tail, &cut), from = 0;
    memcpy(error, ended, head);
    error[head] = '\0';
    if (size == 0)
        return head;
    memcpy(error + head, ": ", 2);
    head += 2;
    if (size > TW__TASK_ERROR_MAX - head) {
        from = size - (TW__TASK_ERROR_MAX - head);
        cut = true;
    }
    for (int i = 1; cut && i < CHARACTER && from < size && ((unsigned char)tail[from] & 0xC0) == 0x80; i++)
        from++; /* the text begins with a whole character */
    memcpy(error + head, tail + from, size - from);
    size += head - from;
    tw__utf8_clean(error, size);
    error[size] = '\0';
    return size;
}
