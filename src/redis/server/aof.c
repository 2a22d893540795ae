/* SPDX-License-Identifier: MIT
 *
 * Reads the server's append-only files. A file has each command as the array of its arguments in RESP, and
 * comments between the commands:
 *
 *     #TS:1795312608\r\n *2\r\n $3\r\n GET\r\n $1\r\n k\r\n ...
 *
 * The manifest has a line of names and values for each file, in the order in which the server loads the files:
 *
 *     file appendonly.aof.3.base.rdb seq 3 type b
 *     file "an appendonly.aof.7.incr.aof" seq 7 type i
 *
 * Sources: the files of Redis 7.0 and 8.0 and of Valkey 8.1; RESP,
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#include "aof.h"

#include <string.h>
#include <strings.h>

/* ---- commands -------------------------------------------------------------------------------------------- */

struct aof_reader {
    FILE *file;
    uint64_t read; /* bytes read from the file so far */
    const char *at, *end;
    char some[16384];
};

/* The size and the first bytes of a string: enough to tell MULTI and EXEC from all other commands. */
struct name {
    uint64_t size;
    char first[5];
};

/* Reads the next bytes of the file. Returns false at its end. */
static bool read_some(struct aof_reader *from)
{
    size_t size = fread(from->some, 1, sizeof from->some, from->file);
    from->read += size;
    from->at = from->some;
    from->end = from->some + size;
    return size != 0;
}

static bool more(struct aof_reader *from)
{
    return from->at != from->end || read_some(from);
}

static uint64_t where(const struct aof_reader *from)
{
    return from->read - (uint64_t)(from->end - from->at);
}

static bool take_byte(struct aof_reader *from, char expected)
{
    return more(from) && *from->at++ == expected;
}

/* Reads a line of this letter and a number. */
static bool read_header(struct aof_reader *from, char letter, uint64_t *number)
{
    *number = 0;
    if (!take_byte(from, letter) || !more(from) || *from->at == '\r')
        return false;
    for (int digits = 0; more(from) && *from->at >= '0' && *from->at <= '9' && digits < 18; digits++)
        *number = *number * 10 + (uint64_t)(*from->at++ - '0');
    return take_byte(from, '\r') && take_byte(from, '\n');
}

static bool skip_bytes(struct aof_reader *from, uint64_t size)
{
    while (size > 0 && more(from)) {
        uint64_t there = (uint64_t)(from->end - from->at), part = size < there ? size : there;
        from->at += part;
        size -= part;
    }
    return size == 0;
}

static bool read_bulk(struct aof_reader *from, struct name *name)
{
    uint64_t kept = 0;
    if (!read_header(from, '$', &name->size))
        return false;
    while (kept < name->size && kept < sizeof name->first && more(from))
        name->first[kept++] = *from->at++;
    return skip_bytes(from, name->size - kept) && take_byte(from, '\r') && take_byte(from, '\n');
}

static bool read_command(struct aof_reader *from, struct name *name)
{
    uint64_t count;
    struct name other;
    if (!read_header(from, '*', &count) || count == 0 || !read_bulk(from, name))
        return false;
    while (--count > 0)
        if (!read_bulk(from, &other))
            return false;
    return true;
}

static bool read_comment(struct aof_reader *from)
{
    while (more(from))
        if (*from->at++ == '\n')
            return true;
    return false;
}

static bool is(const struct name *name, const char *word)
{
    return name->size == strlen(word) && strncasecmp(name->first, word, strlen(word)) == 0;
}

enum tw__redis_aof_ends tw__redis_aof_end(FILE *file, uint64_t *at)
{
    struct aof_reader from = {.file = file, .at = from.some, .end = from.some};
    enum tw__redis_aof_ends end = TW__REDIS_AOF_WHOLE;
    while (more(&from)) {
        struct name name = {0};
        uint64_t begin = where(&from);
        if (*from.at == '#' ? !read_comment(&from) : !read_command(&from, &name))
            return TW__REDIS_AOF_FOREIGN;
        if (is(&name, "exec"))
            end = TW__REDIS_AOF_WHOLE;
        else if (is(&name, "multi") && end == TW__REDIS_AOF_WHOLE) {
            end = TW__REDIS_AOF_OPEN;
            *at = begin;
        }
    }
    return ferror(file) ? TW__REDIS_AOF_FOREIGN : end;
}

/* ---- the manifest ---------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads one character of a quoted name, with the servers' escapes. Example: \x20 is a space. */
static char read_quoted(const char **at)
{
    static const char letters[] = "nrtab", meant[] = "\n\r\t\a\b";
    char c = *(*at)++;
    if (c != '\\' || **at == '\0')
        return c;
    c = *(*at)++;
    if (c == 'x' && hex_digit((*at)[0]) >= 0 && hex_digit((*at)[1]) >= 0) {
        *at += 2;
        return (char)(hex_digit((*at)[-2]) * 16 + hex_digit((*at)[-1]));
    }
    const char *letter = strchr(letters, c);
    return letter == NULL ? c : meant[letter - letters];
}

/* Reads a word of a line, quoted or not. Returns false if there is none, or if it does not fit in `room`. */
static bool read_word(const char **at, char *word, size_t room)
{
    size_t size = 0;
    *at += strspn(*at, " \t\r\n");
    bool quoted = **at == '"';
    *at += quoted;
    while (**at != '\0' && (quoted ? **at != '"' : strchr(" \t\r\n", **at) == NULL)) {
        char c = quoted ? read_quoted(at) : *(*at)++;
        if (++size == room)
            return false;
        *word++ = c;
    }
    *word = '\0';
    *at += quoted && **at == '"';
    return size > 0;
}

bool tw__redis_aof_last(FILE *manifest, char *name, size_t room)
{
    char line[2048], key[16], value[1024], file[1024], last = '\0';
    while (fgets(line, sizeof line, manifest) != NULL) {
        const char *at = line;
        char type = '\0';
        file[0] = '\0';
        while (line[0] != '#' && read_word(&at, key, sizeof key) && read_word(&at, value, sizeof value))
            if (strcmp(key, "file") == 0)
                snprintf(file, sizeof file, "%s", value);
            else if (strcmp(key, "type") == 0)
                type = value[0];
        /* The types are b (base), i (increment) and h (history). The server loads i after b, and does not
         * load h. */
        if ((type == 'b' || type == 'i') && type >= last && file[0] != '\0' && strlen(file) < room) {
            snprintf(name, room, "%s", file);
            last = type;
        }
    }
    return last != '\0';
}
