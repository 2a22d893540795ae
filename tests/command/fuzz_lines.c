/* SPDX-License-Identifier: MIT
 *
 * Fuzzes lines of tasks, as `tickwheel run` and `tickwheel put` read them (lines.c, reader.c, task_line.c,
 * delayed.c), and the ids of `tickwheel tasks` (printable.c). The input is a file. Each line that is accepted
 * is written again from its parts, and must give the same parts. The reader reads each line once, tells each
 * malformed line in one line, and copies the lines that it leaves.
 *
 * The last byte of the input, which is a newline in a file, decides how the reader is to stop: bit 0 changed,
 * at the first malformed line; bits 1 to 3 changed, behind so many lines.
 */
#include "delayed.h"
#include "printable.h"
#include "reader.h"

#include "heard.h"
#include "tests/support/fuzz.h"

#include <base/utf8.h>

#include <inttypes.h>
#include <string.h>

enum { KEPT_MAX = 1 << 16, COLUMNS = 12 };

struct run {
    struct reader reader;
    uint64_t taken, stop_after; /* lines with a task; 0: do not stop */
};

/* ---- lines ----------------------------------------------------------------------------------------------- */

static void write_when(FILE *out, const struct line *line)
{
    char text[DURATION_SIZE];
    if (line->absolute)
        time_print(line->at, text);
    else
        duration_print(line->time_ns, text);
    fprintf(out, "%c%s", line->absolute ? '@' : '+', text);
}

static void write_every(FILE *out, const struct line *line)
{
    char text[DURATION_SIZE];
    duration_print(line->period_ns, text);
    fprintf(out, "every %s ", text);
    if (line->times > 0)
        fprintf(out, "x%" PRIu64 " ", line->times);
}

/* Writes a line from its parts. */
static void write_line(FILE *out, const struct line *line)
{
    char text[DURATION_SIZE];
    if (line->kind == LINE_WAIT) {
        duration_print(line->time_ns, text);
        fprintf(out, "wait %s", text);
        return;
    }
    if (line->kind == LINE_MOVE || line->kind == LINE_CANCEL)
        fprintf(out, "%s %s ", line->kind == LINE_MOVE ? "move" : "cancel", line->id);
    if (line->kind == LINE_EVERY)
        write_every(out, line);
    if (line->kind != LINE_CANCEL)
        write_when(out, line);
    if (line->kind == LINE_TASK || line->kind == LINE_EVERY)
        fprintf(out, " %s %s", line->id, line->payload);
}

static void check_again(const struct line *line)
{
    char *text = NULL;
    size_t size;
    struct line again;
    FILE *out = open_memstream(&text, &size);
    fuzz_require(out != NULL, "there is no memory");
    write_line(out, line);
    fclose(out);
    fuzz_require(line_parse(text, &again) == NULL, "a line is refused when it is written again");
    fuzz_require(again.kind == line->kind && again.absolute == line->absolute && again.at.s == line->at.s &&
                     again.at.ns == line->at.ns && again.time_ns == line->time_ns &&
                     again.period_ns == line->period_ns && again.times == line->times,
                 "a line that is written again has other numbers");
    fuzz_require(strcmp(again.id, line->id) == 0 && strcmp(again.payload, line->payload) == 0,
                 "a line that is written again has other texts");
    free(text);
}

/* Whether the task may go into a file, as docs/store.md says. */
static const char *check_delayed(const struct line *line)
{
    const struct task_options options = {.tries = 0};
    struct tw_store_delayed task;
    const char *refused = delayed_make(&options, line, &task);
    if (refused != NULL) {
        fuzz_require(strncmp(refused, "expected ", 9) == 0, "a refusal does not say what was expected");
        return refused;
    }
    fuzz_require(task.id.size > 0 && task.id.size <= TW_STORE_ID_MAX, "an id has no size that a file takes");
    fuzz_require(task.due_ms <= TW_STORE_TIME_MAX && task.times <= INT64_MAX,
                 "a number is too large for a file");
    fuzz_require((line->kind == LINE_EVERY) == (task.every_ms > 0), "a period comes from nowhere, or is lost");
    fuzz_require(task.every_ms <= UINT64_C(36525) * 86400000, "a period is too long for a file");
    return NULL;
}

/* Reads the word as the id of a task, writes the id, and reads it again. */
static void check_id(const char *word)
{
    static char id[KEPT_MAX], copy[KEPT_MAX];
    char *text = NULL;
    size_t size, shown;
    if (strlen(word) >= sizeof id)
        return;
    strcpy(id, word);
    size = printable_read(id);
    const struct tw_bytes bytes = {id, size};
    memcpy(copy, id, size);
    FILE *out = open_memstream(&text, &shown);
    fuzz_require(out != NULL, "there is no memory");
    printable_write(bytes, true, SIZE_MAX, out);
    fuzz_require(fflush(out) == 0, "there is no memory");
    size_t whole = shown;
    fuzz_require(printable_write(bytes, false, COLUMNS, out) <= COLUMNS, "an id is wider than its column");
    fclose(out);
    heard_require_clean(text + whole, shown - whole);
    text[shown = whole] = '\0';
    heard_require_clean(text, shown);
    fuzz_require(tw__is_utf8(text, shown), "an id is shown as bytes that are not UTF-8");
    fuzz_require(printable_read(text) == size && memcmp(text, copy, size) == 0, "an id does not come back");
    free(text);
}

/* ---- the reader ------------------------------------------------------------------------------------------ */

static const char *take(void *arg, const struct line *line)
{
    struct run *run = arg;
    bool keyed = line->kind != LINE_WAIT;
    fuzz_require(line->kind > LINE_NOTHING && line->kind <= LINE_WAIT, "a line has no kind");
    fuzz_require(!keyed || (*line->id != '\0' && strpbrk(line->id, " \t") == NULL), "an id is no word");
    fuzz_require(line->kind != LINE_EVERY || line->period_ns > 0, "a period is 0");
    run->taken++;
    check_again(line);
    check_id(line->id);
    return keyed ? check_delayed(line) : NULL;
}

static int idle(void *arg)
{
    (void)arg;
    return -1; /* a file: there is no wait */
}

static bool stopping(void *arg)
{
    const struct run *run = arg;
    return run->stop_after > 0 && run->taken >= run->stop_after;
}

/* Returns where the line behind the first `lines` lines begins. */
static size_t behind(const uint8_t *data, size_t size, uint64_t lines)
{
    size_t at = 0;
    while (lines > 0 && at < size)
        lines -= data[at++] == '\n';
    return at;
}

static void check_unread(const struct run *run, const uint8_t *data, size_t size, const char *rest, size_t left)
{
    size_t at = behind(data, size, run->reader.number), more = size - at;
    bool ended = more == 0 || data[size - 1] == '\n';
    fuzz_require(left == more + !ended, "the rest of the file has another size");
    fuzz_require(more == 0 || memcmp(rest, data + at, more) == 0, "the rest of the file has other bytes");
}

static void check_lines(const struct run *run, const uint8_t *data, size_t size, const struct heard *heard)
{
    size_t lines = heard_lines((const char *)data, size);
    lines += size > 0 && data[size - 1] != '\n';
    fuzz_require(heard->out_size == 0, "the reader prints on standard output");
    fuzz_require(heard_lines(heard->err, heard->err_size) == run->reader.bad_lines,
                 "not each malformed line is told in one line");
    heard_require_clean(heard->err, heard->err_size);
    fuzz_require(run->reader.ended ? run->reader.number == lines : run->reader.number <= lines,
                 "the reader has read another number of lines");
    fuzz_require(run->reader.stopped <= (run->reader.strict && run->reader.bad_lines == 1),
                 "the reader has stopped for no reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = size > 0 ? data[size - 1] ^ (unsigned)'\n' : 0;
    struct run run = {.stop_after = how >> 1 & 7};
    struct heard heard;
    char *rest = NULL;
    size_t left;
    FILE *unread = open_memstream(&rest, &left);
    fuzz_require(unread != NULL, "there is no memory");
    run.reader = (struct reader){.command = "fuzz",
                                 .wake = -1,
                                 .strict = (how & 1) != 0,
                                 .take = take,
                                 .idle = idle,
                                 .stopping = stopping,
                                 .arg = &run};
    heard_begin(&heard);
    bool read = reader_read(&run.reader, heard_file(data, size), unread);
    heard_end(&heard);
    fclose(unread);
    fuzz_require(read, "the file cannot be read");
    check_lines(&run, data, size, &heard);
    if (run.reader.ended)
        fuzz_require(left == 0, "a file that was read has a rest");
    else
        check_unread(&run, data, size, rest, left);
    heard_free(&heard);
    free(rest);
    return 0;
}
