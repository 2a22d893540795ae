/* SPDX-License-Identifier: MIT
 *
 * Fuzzes trace files, plain or zstd (trace/record.c, trace/source.c). The input is a file. A trace that
 * is accepted is written again from its records, plain or packed, and must give the same
 * records. A trace that is refused leaves one line of error, and no records.
 */
#include "command.h"
#include "trace/record.h"

#include "heard.h"
#include "tests/support/fuzz.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

enum { WRITTEN_MAX = 1 << 20 }; /* a longer trace, which a small file can unpack to, is not written again */

/* ---- records --------------------------------------------------------------------------------------------- */

static void check_records(const struct trace *trace)
{
    uint64_t tick = 0, line = 1;
    uint32_t ids = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct record *record = &trace->records[i];
        fuzz_require(strchr("amcf", record->what) != NULL && record->what != '\0', "a record has no operation");
        fuzz_require(record->tick >= tick && record->tick < UINT64_MAX, "a record goes back in time");
        fuzz_require(record->line > line, "a record has the number of another line");
        fuzz_require(record->id <= TRACE_ID_MAX, "an id is out of range");
        tick = record->tick;
        line = record->line;
        ids = record->id >= ids ? record->id + 1 : ids;
    }
    fuzz_require(trace->ids == ids, "the number of ids is another");
    fuzz_require(trace->count == 0 || (trace->first_tick == trace->records[0].tick && trace->last_tick == tick),
                 "the first or the last tick is another");
    fuzz_require(trace->tick_ns >= 0 && trace->tick_ns < 1e30, "the length of a tick is no length");
}

static bool takes_deadline(const struct record *record)
{
    return record->what == RECORD_ADD || record->what == RECORD_MOVE;
}

/* Writes the trace as text. Returns NULL if it is too long. */
static char *write_text(const struct trace *trace, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    fuzz_require(out != NULL, "there is no memory");
    fprintf(out, "# tickwheel trace 1\n");
    if (*trace->source != '\0')
        fprintf(out, "# source: %s\n", trace->source);
    if (*trace->tick != '\0')
        fprintf(out, "# tick: %s\n", trace->tick);
    for (size_t i = 0; i < trace->count && ftell(out) < WRITTEN_MAX; i++) {
        const struct record *record = &trace->records[i];
        fprintf(out, "%" PRIu64 " %c %" PRIu32, record->tick, record->what, record->id);
        if (takes_deadline(record))
            fprintf(out, " %" PRIu64, record->deadline);
        fputc('\n', out);
    }
    fclose(out);
    if (*size < WRITTEN_MAX)
        return text;
    free(text);
    return NULL;
}

/* ---- packing --------------------------------------------------------------------------------------------- */

static void require_same(const struct trace *a, const struct trace *b)
{
    fuzz_require(a->count == b->count && a->ids == b->ids, "a trace comes back with another number of records");
    for (size_t i = 0; i < a->count; i++) {
        const struct record *one = &a->records[i], *two = &b->records[i];
        fuzz_require(one->tick == two->tick && one->what == two->what && one->id == two->id &&
                         one->deadline == two->deadline,
                     "a record comes back as another one");
    }
    fuzz_require(strcmp(a->source, b->source) == 0 && strcmp(a->tick, b->tick) == 0,
                 "a note comes back changed");
}

static void read_again(const struct trace *trace, const uint8_t *file, size_t size)
{
    struct trace again;
    fuzz_require(trace_load(&again, heard_file(file, size)) == COMMAND_GOOD,
                 "a trace is refused when it is written again");
    require_same(trace, &again);
    trace_free(&again);
}

/* The number of records chooses whether the text is packed. */
static void check_again(const struct trace *trace)
{
    size_t size;
    char *text = write_text(trace, &size);
    if (text == NULL)
        return;
    size_t room = ZSTD_compressBound(size);
    uint8_t *packed = malloc(room);
    fuzz_require(packed != NULL, "there is no memory");
    if (trace->count % 2 == 0)
        memcpy(packed, text, size);
    else
        size = ZSTD_compress(packed, room, text, size, 1);
    fuzz_require(ZSTD_isError(size) == 0, "zstd does not pack");
    read_again(trace, packed, size);
    free(packed);
    free(text);
}

static void check_refusal(const struct trace *trace, const struct heard *heard)
{
    fuzz_require(trace->count == 0 && trace->records == NULL, "a trace that was refused has records");
    fuzz_require(heard_lines(heard->err, heard->err_size) == 1, "a refusal is not one line");
    heard_require_clean(heard->err, heard->err_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard heard;
    struct trace trace;
    heard_begin(&heard);
    int status = trace_load(&trace, heard_file(data, size));
    if (status == COMMAND_GOOD) {
        check_records(&trace);
        check_again(&trace);
    }
    heard_end(&heard);
    if (status == COMMAND_GOOD)
        fuzz_require(heard.err_size == 0, "a trace is accepted with an error");
    else
        check_refusal(&trace, &heard);
    if (status == COMMAND_GOOD) {
        size_t all = trace.count;
        trace_drop_remarks(&trace);
        fuzz_require(trace.count <= all, "the remarks become more");
        trace_free(&trace);
    }
    heard_free(&heard);
    return 0;
}
