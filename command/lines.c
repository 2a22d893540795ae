/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lines {
    int fd, other;
    size_t begin, end; /* the part of `text` that has been read, but not returned */
    bool ended, skipping;
    char text[LINES_MAX + 2]; /* the longest line, its newline, and a terminator */
};

struct lines *lines_open(const char *path, int other)
{
    struct lines *lines = malloc(sizeof *lines);
    if (lines == NULL)
        return NULL;
    lines->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    lines->other = other;
    lines->begin = lines->end = 0;
    lines->ended = lines->skipping = false;
    if (lines->fd >= 0)
        return lines;
    int saved = errno;
    free(lines);
    errno = saved;
    return NULL;
}

void lines_close(struct lines *lines)
{
    if (lines->fd != STDIN_FILENO)
        close(lines->fd);
    free(lines);
}

bool lines_more(const struct lines *lines)
{
    return memchr(lines->text + lines->begin, '\n', lines->end - lines->begin) != NULL;
}

/* Takes the next whole line from the buffer, or the last line of the input even without a newline. Returns
 * its kind, or LINES_NONE. */
static enum lines_got take(struct lines *lines, char **text)
{
    char *begin = lines->text + lines->begin, *newline = memchr(begin, '\n', lines->end - lines->begin);
    if (newline == NULL && !(lines->ended && lines->end > lines->begin))
        return LINES_NONE;
    size_t length = newline != NULL ? (size_t)(newline - begin) : lines->end - lines->begin;
    begin[length] = '\0';
    lines->begin += length + (newline != NULL);
    *text = begin;
    return strlen(begin) == length ? LINES_LINE : LINES_NUL;
}

/* Reads more bytes into the buffer. Returns the result of read(). */
static ssize_t fill(struct lines *lines)
{
    memmove(lines->text, lines->text + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    ssize_t n = read(lines->fd, lines->text + lines->end, LINES_MAX + 1 - lines->end);
    if (n > 0)
        lines->end += (size_t)n;
    lines->ended |= n == 0;
    return n;
}

/* Waits for input. Returns false if none came in time, or the other descriptor can be read. */
static bool wait_for_input(const struct lines *lines, int wait_ms)
{
    struct pollfd fds[] = {{.fd = lines->fd, .events = POLLIN}, {.fd = lines->other, .events = POLLIN}};
    int n = poll(fds, 2, wait_ms);
    return n > 0 && (fds[0].revents != 0) && fds[1].revents == 0;
}

/* Deals with a full buffer in which no line ends: the line is too long. Sets *text to its beginning and skips
 * the rest. Returns true for the first part of a line only. */
static bool pass_over(struct lines *lines, char **text)
{
    bool first = !lines->skipping;
    *text = lines->text;
    lines->text[lines->end] = '\0';
    lines->begin = lines->end;
    lines->skipping = true;
    return first;
}

static bool full(const struct lines *lines)
{
    return lines->begin == 0 && lines->end == LINES_MAX + 1;
}

enum lines_got lines_next(struct lines *lines, int wait_ms, char **text)
{
    for (;;) {
        enum lines_got got = take(lines, text);
        if (got != LINES_NONE && !lines->skipping)
            return got;
        if (got != LINES_NONE) { /* this is the end of the line that is too long */
            lines->skipping = false;
            continue;
        }
        if (lines->ended)
            return LINES_END;
        if (full(lines) && pass_over(lines, text))
            return LINES_LONG;
        if (!wait_for_input(lines, wait_ms))
            return LINES_NONE;
        if (fill(lines) < 0 && errno != EINTR && errno != EAGAIN)
            return LINES_FAILED;
    }
}

/* Drops the rest of a line whose beginning was returned as LINES_LONG. */
static void finish_skipping(struct lines *lines)
{
    char *begin = lines->text + lines->begin, *newline = memchr(begin, '\n', lines->end - lines->begin);
    if (!lines->skipping)
        return;
    lines->begin = newline != NULL ? (size_t)(newline + 1 - lines->text) : lines->end;
    lines->skipping = newline == NULL;
}

bool lines_rest(struct lines *lines, FILE *out)
{
    struct stat about;
    bool to_the_end = fstat(lines->fd, &about) == 0 && S_ISREG(about.st_mode);
    ssize_t n;
    char last = '\n';
    do {
        finish_skipping(lines);
        if (lines->end > lines->begin) {
            fwrite(lines->text + lines->begin, 1, lines->end - lines->begin, out);
            last = lines->text[lines->end - 1];
        }
        lines->begin = lines->end = 0;
    } while (to_the_end && (n = fill(lines)) != 0 && (n > 0 || errno == EINTR));
    if (last != '\n')
        fputc('\n', out);
    return !to_the_end || lines->ended;
}
