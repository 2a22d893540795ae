/* SPDX-License-Identifier: MIT */
#include "rest.h"

#include "command.h"
#include "lines.h"
#include "output.h"
#include "screen.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool cannot(const char *path)
{
    complain("tickwheel run: --rest: %s: cannot be written: %s", path, strerror(errno));
    return false;
}

/* The rest is written to a new file in the same folder, which then replaces the old file. So the folder must
 * be writable. */
static bool directory_is_writable(const char *path)
{
    char *real = realpath(path, NULL), *copy = real != NULL ? real : strdup(path);
    bool good = copy != NULL && access(dirname(copy), W_OK | X_OK) == 0;
    int saved = errno;
    free(copy);
    errno = saved;
    return good || cannot(path);
}

bool rest_check(const char *path)
{
    struct stat about;
    if (strcmp(path, "-") == 0)
        return true;
    if (stat(path, &about) != 0 || S_ISREG(about.st_mode))
        return directory_is_writable(path);
    if (S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return cannot(path);
    }
    return access(path, W_OK) == 0 || cannot(path);
}

/* Writes a date if the line gave a date, or if --speed is 1. Otherwise writes the duration that is left,
 * because the calendar of a later run starts at another time. */
static void write_when(const struct calendar *calendar, uint64_t now_ns, const struct value *value,
                       uint64_t due_ns, FILE *out)
{
    char text[TIME_SIZE + DURATION_SIZE];
    if (calendar->speed == 1 || value->first.absolute)
        time_print(calendar_due(calendar, &value->first, value->period_ns, due_ns), text);
    else
        duration_print(calendar_left(calendar, due_ns, now_ns), text);
    fprintf(out, "%c%s ", calendar->speed == 1 || value->first.absolute ? '@' : '+', text);
}

/* A repeating task becomes a single line with all its calls: first those that could not be printed, then those
 * that were not due yet. A second line with the same id would replace the first. */
void rest_task(const struct calendar *calendar, uint64_t now_ns, const struct value *value, FILE *out)
{
    uint64_t calls = value->calls == TW_FOREVER ? TW_FOREVER : value->calls + value->unprinted;
    char period[DURATION_SIZE];
    if (value->period_ns > 0 && (calls > 1 || value->calls > 0)) {
        duration_print(value->period_ns, period);
        fprintf(out, "every %s ", period);
        if (calls != TW_FOREVER)
            fprintf(out, "x%" PRIu64 " ", calls);
    }
    write_when(calendar, now_ns, value, value_next_ns(value), out);
    const char *payload = value_payload(value);
    fprintf(out, "%s%s%s\n", value->id, *payload != '\0' ? " " : "", payload);
}

bool rest_file(const char *path, FILE *out)
{
    struct stat about;
    if (strcmp(path, "-") != 0 && stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return true; /* opening a pipe would wait for its writer */
    struct lines *lines = lines_open(path, -1);
    bool good = lines != NULL && lines_rest(lines, out);
    if (!good)
        complain("tickwheel run: %s: cannot be read: %s", path, strerror(errno));
    if (lines != NULL)
        lines_close(lines);
    return good;
}

static bool write_output(struct tw_bytes text)
{
    int error = screen_write(text);
    if (error != 0)
        complain("standard output: cannot be written: %s", screen_reason(error));
    return error == 0;
}

bool rest_write(const char *path, struct tw_bytes text, bool *on_stderr)
{
    bool good = path == NULL || (strcmp(path, "-") == 0 ? write_output(text) : output_write(path, text));
    *on_stderr = path == NULL || !good;
    if (*on_stderr && fwrite(text.data, 1, text.size, stderr) < text.size)
        good = false;
    return good;
}
