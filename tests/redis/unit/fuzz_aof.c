/* SPDX-License-Identifier: MIT
 *
 * Fuzzes append-only files and their manifests (server/aof.c). The end of a file of commands is compared with a
 * second reader, which has the whole file in memory. The name that a manifest gives fits into its room.
 */
#include "tests/support/fuzz.h"

#include <src/redis/server/aof.h>
#include <string.h>
#include <strings.h>

enum { DIGITS_MAX = 18, ROOMS = 64 };

/* ---- the second reader ----------------------------------------------------------------------------------- */

struct text {
    const char *at, *end;
};

/* Reads a letter, one to 18 digits, and the end of the line. */
static bool read_number(struct text *text, char letter, uint64_t *number)
{
    const char *line = text->at, *digits = line + 1;
    size_t left = (size_t)(text->end - line), count = 0;
    *number = 0;
    if (left < 4 || *line != letter)
        return false;
    for (; digits + count < text->end && digits[count] >= '0' && digits[count] <= '9'; count++)
        *number = *number * 10 + (uint64_t)(digits[count] - '0');
    text->at = digits + count + 2;
    return count >= 1 && count <= DIGITS_MAX && text->at <= text->end && memcmp(text->at - 2, "\r\n", 2) == 0;
}

static bool read_string(struct text *text, struct text *string)
{
    uint64_t size;
    if (!read_number(text, '$', &size) || size > (uint64_t)(text->end - text->at) ||
        (uint64_t)(text->end - text->at) - size < 2)
        return false;
    *string = (struct text){text->at, text->at + size};
    text->at += size + 2;
    return memcmp(text->at - 2, "\r\n", 2) == 0;
}

static bool read_strings(struct text *text, struct text *name)
{
    struct text other;
    uint64_t count;
    if (!read_number(text, '*', &count) || count == 0 || !read_string(text, name))
        return false;
    while (--count > 0)
        if (!read_string(text, &other))
            return false;
    return true;
}

static bool is(const struct text *name, const char *word)
{
    size_t size = (size_t)(name->end - name->at);
    return size == strlen(word) && strncasecmp(name->at, word, size) == 0;
}

static enum tw__redis_aof_ends end_of(const char *bytes, size_t size, uint64_t *begin)
{
    struct text text = {bytes, bytes + size}, name;
    bool open = false;
    while (text.at < text.end) {
        const char *first = text.at;
        if (*first == '#') {
            const char *newline = memchr(first, '\n', (size_t)(text.end - first));
            if (newline == NULL)
                return TW__REDIS_AOF_FOREIGN;
            text.at = newline + 1;
            continue;
        }
        if (!read_strings(&text, &name))
            return TW__REDIS_AOF_FOREIGN;
        if (is(&name, "multi") && !open)
            *begin = (uint64_t)(first - bytes);
        open = (open || is(&name, "multi")) && !is(&name, "exec");
    }
    return open ? TW__REDIS_AOF_OPEN : TW__REDIS_AOF_WHOLE;
}

/* ---- the target ------------------------------------------------------------------------------------------ */

static FILE *file_of(const uint8_t *data, size_t size)
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
    fuzz_require(file != NULL, "there is no file");
    return file;
}

static void check_commands(const uint8_t *data, size_t size)
{
    uint64_t found = 0, expected = 0;
    FILE *file = file_of(data, size);
    enum tw__redis_aof_ends end = tw__redis_aof_end(file, &found);
    fclose(file);
    fuzz_require(end == end_of((const char *)data, size, &expected), "the file has another end");
    fuzz_require(end != TW__REDIS_AOF_OPEN || found == expected, "the transaction begins elsewhere");
}

/* In each room up to 64 bytes. A name that fits into a room fits into each larger one. */
static void check_manifest(const uint8_t *data, size_t size)
{
    for (size_t room = 1; room <= ROOMS; room += 9) {
        char *name = malloc(room);
        FILE *file = file_of(data, size);
        fuzz_require(name != NULL, "there is no memory");
        if (tw__redis_aof_last(file, name, room))
            fuzz_require(memchr(name, '\0', room) != NULL && *name != '\0', "a name does not fit, or is empty");
        fclose(file);
        free(name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_commands(data, size);
    check_manifest(data, size);
    return 0;
}
