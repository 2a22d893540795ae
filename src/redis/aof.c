/* SPDX-License-Identifier: MIT
 *
 * Reads the server's append-only files: each command as the array of its arguments in RESP, lines with a # between them,
 *
 *     #TS:1795312608\r\n *2\r\n $3\r\n GET\r\n $1\r\n k\r\n ...
 *
 * and the manifest, a line for each file in the order in which they are loaded:
 *
 *     file appendonly.aof.3.incr.aof seq 3 type i
 *
 * Source: the servers' own files, of Redis 7.0 and 8.0 and Valkey 8.1; RESP: https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#include "aof.h"

#include <string.h>
#include <strings.h>

/* ---- commands ---------------------------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
};

/* Reads such a letter and a number, to the end of the line. */
static bool read_header(struct reader *from, char letter, uint64_t *number)
{
    const char *at = from->at;
    if (at == from->end || *at++ != letter)
        return false;
    const char *first = at;
    for (*number = 0; at != from->end && *at >= '0' && *at <= '9' && at - first < 18; at++)
        *number = *number * 10 + (uint64_t)(*at - '0');
    if (at == first || from->end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return false;
    from->at = at + 2;
    return true;
}

static bool read_argument(struct reader *from, struct tw__bytes *argument)
{
    uint64_t size;
    if (!read_header(from, '$', &size) || (uint64_t)(from->end - from->at) < size + 2)
        return false;
    *argument = (struct tw__bytes){from->at, (size_t)size};
    from->at += size + 2;
    return true;
}

/* Reads a command; what counts is its name. */
static bool read_command(struct reader *from, struct tw__bytes *name)
{
    uint64_t count;
    struct tw__bytes other;
    if (!read_header(from, '*', &count) || count == 0 || !read_argument(from, name))
        return false;
    while (--count > 0)
        if (!read_argument(from, &other))
            return false;
    return true;
}

/* A command, or a line that is none and has no name. */
static bool read_item(struct reader *from, struct tw__bytes *name)
{
    *name = (struct tw__bytes){from->at, 0};
    if (*from->at != '#')
        return read_command(from, name);
    const char *newline = memchr(from->at, '\n', (size_t)(from->end - from->at));
    if (newline != NULL)
        from->at = newline + 1;
    return newline != NULL;
}

static bool named(struct tw__bytes name, const char *word)
{
    return name.size == strlen(word) && strncasecmp(name.at, word, name.size) == 0;
}

enum tw__aof_end tw__aof_end(struct tw__bytes file, size_t *at)
{
    struct reader from = {file.at, file.at + file.size};
    struct tw__bytes name;
    enum tw__aof_end end = TW__AOF_WHOLE;
    while (from.at != from.end) {
        size_t begin = (size_t)(from.at - file.at);
        if (!read_item(&from, &name))
            return TW__AOF_FOREIGN;
        if (named(name, "exec"))
            end = TW__AOF_WHOLE;
        else if (named(name, "multi") && end != TW__AOF_WHOLE)
            end = TW__AOF_NESTED;
        else if (named(name, "multi")) {
            end = TW__AOF_OPEN;
            *at = begin;
        }
    }
    return end;
}

/* ---- the manifest ------------------------------------------------------------------------------------------------- */

/* Takes the text before a mark, and the mark. */
static bool take_until(struct reader *from, const char *mark, struct tw__bytes *text)
{
    const char *found = memmem(from->at, (size_t)(from->end - from->at), mark, strlen(mark));
    if (found == NULL)
        return false;
    *text = (struct tw__bytes){from->at, (size_t)(found - from->at)};
    from->at = found + strlen(mark);
    return true;
}

/* Reads a line: the name of the file, and whether commands are appended to it. */
static bool read_line(struct tw__bytes line, struct tw__bytes *name)
{
    struct reader from = {line.at, line.at + line.size};
    struct tw__bytes before;
    if (!take_until(&from, "file ", &before) || before.size != 0)
        return false;
    bool quoted = from.at != from.end && *from.at == '"';
    from.at += quoted;
    return take_until(&from, quoted ? "\" " : " ", name) && take_until(&from, "type ", &before) &&
           from.at != from.end && *from.at == 'i';
}

bool tw__aof_last(struct tw__bytes manifest, struct tw__bytes *name)
{
    struct reader from = {manifest.at, manifest.at + manifest.size};
    struct tw__bytes line, found;
    *name = (struct tw__bytes){NULL, 0};
    while (take_until(&from, "\n", &line))
        if (read_line(line, &found))
            *name = found;
    return name->size != 0 && memchr(name->at, '\\', name->size) == NULL;
}
