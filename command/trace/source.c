/* SPDX-License-Identifier: MIT
 *
 * fill() reads bytes. One unpacking step turns the bytes in the buffer into text: by copying, or by zstd. A
 * step may use up input without making text, or make text without using up input. So source_read() steps
 * until there is text, and reads more bytes only if a step could not use the bytes it had. An unfinished zstd
 * frame at the end of the file is an error, because half a trace must not pass for a whole trace.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { INPUT_SIZE = 1 << 16, PROBLEM_SIZE = 160, MAGIC_SIZE = 4 };

enum packing { UNKNOWN, PLAIN, ZSTD };

struct source {
    int fd;
    enum packing packing;
    bool ended;  /* the file has no more bytes */
    bool inside; /* a zstd frame has begun, but not ended */
    size_t at, have;
    ZSTD_DStream *zstd;
    char problem[PROBLEM_SIZE];
    unsigned char input[INPUT_SIZE];
};

struct source *source_open(const char *path)
{
    struct source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return NULL;
    source->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0) {
        free(source);
        return NULL;
    }
    return source;
}

void source_close(struct source *source)
{
    if (source == NULL)
        return;
    ZSTD_freeDStream(source->zstd);
    if (source->fd != STDIN_FILENO)
        close(source->fd);
    free(source);
}

const char *source_problem(const struct source *source)
{
    return source->problem;
}

/* Keeps the text of the first error. Returns false, so that the caller can return its result. */
static bool fail(struct source *source, const char *before, const char *what, const char *after)
{
    if (source->problem[0] == '\0')
        snprintf(source->problem, sizeof source->problem, "%s%s%s", before, what, after);
    return false;
}

/* Moves the unused bytes to the front of the buffer, and reads more bytes behind them. */
static bool fill(struct source *source)
{
    memmove(source->input, source->input + source->at, source->have - source->at);
    source->have -= source->at;
    source->at = 0;
    ssize_t got;
    do
        got = read(source->fd, source->input + source->have, INPUT_SIZE - source->have);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail(source, "a file that cannot be read (", strerror(errno), "), expected a trace");
    source->ended = got == 0;
    source->have += (size_t)got;
    return true;
}

static enum packing packing_of(const unsigned char *bytes, size_t length)
{
    static const unsigned char ZSTD_MAGIC[] = {0x28, 0xB5, 0x2F, 0xFD};
    static const unsigned char SKIPPABLE_MAGIC[] = {0x2A, 0x4D, 0x18};
    if (length < MAGIC_SIZE)
        return PLAIN;
    /* A zstd file may also begin with a frame that readers skip: its first byte is 0x50 to 0x5F. */
    bool skippable = bytes[0] >> 4 == 5 && memcmp(bytes + 1, SKIPPABLE_MAGIC, sizeof SKIPPABLE_MAGIC) == 0;
    return skippable || memcmp(bytes, ZSTD_MAGIC, sizeof ZSTD_MAGIC) == 0 ? ZSTD : PLAIN;
}

static bool detect(struct source *source)
{
    while (source->have < MAGIC_SIZE && !source->ended)
        if (!fill(source))
            return false;
    if (source->have >= 2 && source->input[0] == 0x1F && source->input[1] == 0x8B)
        return fail(source, "gzip data", "",
                    ", expected text or zstd data (try: zcat FILE | tickwheel trace replay -)");
    source->packing = packing_of(source->input, source->have);
    if (source->packing == ZSTD && (source->zstd = ZSTD_createDStream()) == NULL)
        return fail(source, "a zstd file", "", ", expected enough memory to unpack it");
    return true;
}

static size_t step_plain(struct source *source, char *text, size_t size)
{
    size_t length = source->have - source->at;
    if (length > size)
        length = size;
    memcpy(text, source->input + source->at, length);
    source->at += length;
    return length;
}

static bool step_zstd(struct source *source, char *text, size_t size, size_t *produced)
{
    ZSTD_inBuffer in = {.src = source->input, .size = source->have, .pos = source->at};
    ZSTD_outBuffer out = {.dst = text, .size = size, .pos = 0};
    if (!source->inside && in.pos == in.size)
        return true;
    size_t wanted = ZSTD_decompressStream(source->zstd, &out, &in);
    source->at = in.pos;
    *produced = out.pos;
    if (ZSTD_isError(wanted))
        return fail(source, "damaged zstd data (", ZSTD_getErrorName(wanted), "), expected data that unpacks");
    source->inside = wanted != 0;
    return true;
}

static bool step(struct source *source, char *text, size_t size, size_t *produced)
{
    *produced = 0;
    if (source->packing == ZSTD)
        return step_zstd(source, text, size, produced);
    *produced = step_plain(source, text, size);
    return true;
}

ssize_t source_read(struct source *source, char *text, size_t size)
{
    if (source->packing == UNKNOWN && !detect(source))
        return -1;
    for (;;) {
        size_t produced, before = source->at;
        if (!step(source, text, size, &produced))
            return -1;
        if (produced > 0)
            return (ssize_t)produced;
        if (source->at != before && source->at < source->have)
            continue;
        if (source->ended)
            break;
        if (!fill(source))
            return -1;
    }
    if (!source->inside)
        return 0;
    fail(source, "zstd", " data that ends too early", ", expected the rest of it");
    return -1;
}
