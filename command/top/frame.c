/* SPDX-License-Identifier: MIT
 *
 * The parts from top to bottom: the watched process, levels, rates and the history of one, lateness, the
 * forecast, deferred deliveries, the paused and the largest queues, the keys.
 *
 * Each part takes a number of rows at a given width. The rows left over go to the bars of the forecast, then
 * to the queues, then to blank rows between the parts. If there are too few rows, the bars are low and the
 * last parts are left out, because the sheet drops all text outside its edges.
 */
#include "frame.h"

#include "table.h"

#include <string.h>

enum {
    BARS_MIN = 3,   /* rows of the bars */
    BARS_USUAL = 6, /* rows of the bars in a whole frame */
    BARS_MAX = 14,
    QUEUES_MIN = 3
};

/* ---- history --------------------------------------------------------------------------------------------- */

const struct reading *history_before(const struct history *history)
{
    return history->readings > 1 ? &history->before : NULL;
}

void history_add(struct history *history, const struct reading *reading)
{
    bool same = history->readings > 0 && reading->at_ns == history->now.at_ns;
    if (!same)
        history->before = history->now;
    history->now = *reading;
    if (same)
        return; /* a source that is asked often gives the same answer again for a while */
    history->readings += history->readings < 2;
    if (history->readings < 2)
        return;
    memmove(history->rate + 1, history->rate, (HISTORY - 1) * sizeof *history->rate);
    history->rate[0] = reading_due_rate(&history->before, &history->now);
    history->rates += history->rates < HISTORY;
}

/* ---- the watched process --------------------------------------------------------------------------------- */

static void put_title(struct page *page, const char *notice)
{
    const struct reading *reading = page->reading;
    const char *title = strcmp(reading->source, "redis") == 0 ? "tickwheel top  "
                        : reading_is_store(reading)           ? "tickwheel top  store  "
                                                              : "tickwheel top  scheduler  ";
    sheet_row(page->sheet, 0, *notice != '\0' ? STYLE_ALARM : STYLE_TITLE);
    if (*notice != '\0')
        sheet_put(page->sheet, 0, MARGIN, STYLE_ALARM, "%s", notice);
    else
        sheet_put(page->sheet, 0, MARGIN, STYLE_TITLE, "%s%s", title, reading->address);
    page->row = 1;
}

static const char WARNING[] = "warning: ";

static void put_state(struct page *page)
{
    const struct reading *reading = page->reading;
    struct figure up = reading->up_s == 0 ? (struct figure){"0 s"} : figure_time(reading->up_s, 1e9);
    int col =
        sheet_put(page->sheet, page->row, MARGIN, STYLE_LABEL, "%s, %s", reading->version, reading->state);
    if (reading->up_s != ABSENT)
        col = sheet_put(page->sheet, page->row, col, STYLE_LABEL, ", up %s", up.text);
    if (reading->durability[0] != '\0')
        col = sheet_put(page->sheet, page->row, col, STYLE_LABEL, ", %s", reading->durability);
    if (strcmp(reading->deliver, "no") == 0)
        sheet_put(page->sheet, page->row, col, STYLE_WARN, ", tickwheel.deliver is no");
    page->row++;
    if (reading->warning[0] == '\0')
        return;
    sheet_put(page->sheet, page->row++, MARGIN, STYLE_WARN, "%s%s", WARNING, reading->warning);
}

/* ---- levels and rates ------------------------------------------------------------------------------------ */

enum { READY_LONG_MS = 60000 }; /* so long a ready task has waited for a worker that it is a warning */

/* The name of a number in the frame, where there is little room. */
static const char *name_of(int count)
{
    switch (count) {
    case COUNT_OLDEST_READY:
        return "oldest";
    case COUNT_PAUSED_TASKS:
        return "paused";
    case COUNT_PAUSED_QUEUES:
        return "pauses";
    default:
        return COUNT_NAMES[count];
    }
}

static int levels_told(const struct reading *reading)
{
    int told = 0;
    for (int i = 0; i < COUNT_LEVELS; i++)
        told += reading->count[i] != ABSENT;
    return told;
}

static enum style style_of_level(int level, uint64_t count)
{
    switch (level) {
    case COUNT_PENDING:
    case COUNT_TASKS:
    case COUNT_WAITING:
        return STYLE_NUMBER;
    case COUNT_LATE:
    case COUNT_HELD:
    case COUNT_PAUSED_TASKS:
    case COUNT_PAUSED_QUEUES:
    case COUNT_DEAD:
        return count > 0 ? STYLE_WARN : STYLE_PLAIN;
    case COUNT_OLDEST_READY:
        return count >= READY_LONG_MS ? STYLE_WARN : STYLE_PLAIN;
    default:
        return STYLE_PLAIN;
    }
}

static struct figure show_level(const struct reading *reading, int level)
{
    uint64_t count = reading->count[level];
    if (level == COUNT_MEMORY)
        return figure_bytes((double)count, "B");
    if (level == COUNT_OLDEST_READY)
        return show_ms(reading->count[COUNT_READY] == 0 ? ABSENT : count);
    return show_count(count);
}

static void put_levels(struct page *page)
{
    int item = 0, most = page->levels * items_in_a_row(page->cols);
    for (int i = 0; i < COUNT_LEVELS; i++) {
        uint64_t count = page->reading->count[i];
        if (count != ABSENT && item < most)
            put_item(page, item++, name_of(i), show_level(page->reading, i).text, style_of_level(i, count));
    }
    page->row += rows_for(item, page->cols);
}

static double most_rate(const struct history *history, int count)
{
    double most = 0;
    for (int i = 0; i < count && i < history->rates; i++)
        if (history->rate[i] > most)
            most = history->rate[i];
    return most;
}

/* Draws how many tasks came due in each interval, with the latest rate on the right. */
static void put_spark(struct page *page, int col)
{
    const struct history *history = page->history;
    int room = page->cols - MARGIN - col;
    double most = most_rate(history, room);
    for (int i = 0; i < room && i < history->rates; i++) {
        double rate = history->rate[i];
        int eighths = most <= 0 || rate <= 0 ? 0 : (int)(rate / most * 7) + 1;
        sheet_block(page->sheet, page->row, page->cols - MARGIN - 1 - i, STYLE_SPARK, eighths);
    }
}

static double rate_of(const struct page *page, enum count count)
{
    return reading_rate(page->before, page->reading, count);
}

static void put_due(struct page *page)
{
    int col = sheet_put(page->sheet, page->row, MARGIN, STYLE_LABEL, "due ");
    col = sheet_put(page->sheet, page->row, col, STYLE_NUMBER, "%s",
                    show_rate(reading_due_rate(page->before, page->reading)).text);
    col = sheet_put(page->sheet, page->row, col, STYLE_LABEL, "/s");
    if (page->cols >= 60)
        col = sheet_put(page->sheet, page->row, MARGIN + ITEM, STYLE_LABEL, "in all %s",
                        show_count(reading_due(page->reading)).text);
    put_spark(page, page->cols >= 60 && col < 2 * ITEM ? 2 * ITEM + MARGIN : col + 2);
    page->row++;
}

/* Rare events appear only after the first of them has occurred. Tasks that become ready come due. */
static bool is_rate_told(const struct reading *reading, int i)
{
    uint64_t count = reading->count[i];
    return i != COUNT_OFFERED && count != ABSENT && (i <= COUNT_MOVED || count > 0);
}

static int rates_told(const struct reading *reading)
{
    int told = 0;
    for (int i = COUNT_PUT; i < COUNTS; i++)
        told += is_rate_told(reading, i);
    return told;
}

static void put_rates(struct page *page)
{
    int item = 0;
    for (int i = COUNT_PUT; i < COUNTS; i++) {
        struct figure figure;
        if (!is_rate_told(page->reading, i))
            continue;
        snprintf(figure.text, sizeof figure.text, "%.40s/s", show_rate(rate_of(page, (enum count)i)).text);
        put_item(page, item++, name_of(i), figure.text,
                 i == COUNT_DIED || i == COUNT_REFUSED ? STYLE_WARN : STYLE_PLAIN);
    }
    page->row += rows_for(item, page->cols);
}

/* ---- lateness -------------------------------------------------------------------------------------------- */

#define LATE_NS 1000000000 /* lateness of a second or more is shown as a warning */
enum { COLUMN = 10, LATENESS = 12, NARROW_COLUMN = 8, NARROW_LATENESS = 7 };

static bool is_narrow(const struct page *page)
{
    return page->cols < LATENESS + 5 * COLUMN + MARGIN;
}

/* Puts a number in its column, or the name of the column. A narrow sheet has no LATE_P999. */
static void put_late(struct page *page, int i, enum style style, const char *text)
{
    bool narrow = is_narrow(page);
    int end =
        MARGIN + (narrow ? NARROW_LATENESS + NARROW_COLUMN * (i - (i > LATE_P999)) : LATENESS + COLUMN * i);
    if (!narrow || i != LATE_P999)
        sheet_put(page->sheet, page->row, end - (int)strlen(text), style, "%s", text);
}

static void put_lateness_row(struct page *page, const char *name, const uint64_t late[LATE_NUMBERS])
{
    sheet_put(page->sheet, page->row, MARGIN, STYLE_LABEL, "%s", name);
    for (int i = LATE_P50; i < LATE_NUMBERS; i++)
        put_late(page, i, late[i] != ABSENT && late[i] >= LATE_NS ? STYLE_WARN : STYLE_PLAIN,
                 show_time(late[LATE_CALLS] == 0 ? ABSENT : late[i]).text);
    if (page->cols >= LATENESS + 5 * COLUMN + 14 && late[LATE_CALLS] != ABSENT)
        sheet_put(page->sheet, page->row, MARGIN + LATENESS + 5 * COLUMN + 1, STYLE_LABEL, "of %s",
                  show_count(late[LATE_CALLS]).text);
    page->row++;
}

static void put_lateness(struct page *page)
{
    static const char *const HEADS[] = {NULL, "p50", "p90", "p99", "p99.9", "max"};
    bool narrow = is_narrow(page);
    sheet_put(page->sheet, page->row, MARGIN, STYLE_HEAD, narrow ? "late" : "lateness");
    for (int i = LATE_P50; i < LATE_NUMBERS; i++)
        put_late(page, i, STYLE_LABEL, HEADS[i]);
    page->row++;
    put_lateness_row(page, narrow ? "10 s" : "past 10 s", page->reading->recent);
    if (!page->brief)
        put_lateness_row(page, narrow ? "all" : "since start", page->reading->all);
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

/* How the coming minute is spread over the columns: `wide` columns for each bar, `seconds` seconds in each
 * bar. */
struct scale {
    int wide, seconds, bars;
};

static struct scale scale_of(int cols)
{
    struct scale scale = {1, 1, READING_STEPS};
    int room = cols - 2 * MARGIN;
    if (room >= READING_STEPS)
        scale.wide = room / READING_STEPS > 3 ? 3 : room / READING_STEPS;
    for (int seconds = 2; seconds <= READING_STEPS && scale.bars > room; seconds++)
        if (READING_STEPS % seconds == 0) {
            scale.seconds = seconds;
            scale.bars = READING_STEPS / seconds;
        }
    return scale;
}

static uint64_t bar_of(const struct reading *reading, const struct scale *scale, int i)
{
    uint64_t sum = 0;
    for (int k = 0; k < scale->seconds; k++)
        sum += reading->forecast[i * scale->seconds + k];
    return sum;
}

/* Draws a bar, in eighths of a row from below. A count above 0 shows at least one eighth. */
static void put_bar(struct page *page, int col, uint64_t count, uint64_t most)
{
    int high = page->bars * 8;
    int eighths = (int)((double)count / (double)most * high + 0.5);
    eighths = eighths == 0 && count > 0 ? 1 : eighths;
    for (int row = 0; row < page->bars; row++) {
        int left = eighths - row * 8;
        int shade = page->bars < 2 ? 7 : row * 7 / (page->bars - 1);
        sheet_block(page->sheet, page->row + page->bars - 1 - row, col, (enum style)(STYLE_BARS + shade),
                    left < 0   ? 0
                    : left > 8 ? 8
                               : left);
    }
}

static void put_bars(struct page *page, const struct scale *scale)
{
    uint64_t most = 0;
    for (int i = 0; i < scale->bars; i++)
        if (bar_of(page->reading, scale, i) > most)
            most = bar_of(page->reading, scale, i);
    for (int i = 0; most > 0 && i < scale->bars; i++)
        for (int k = 0; k < scale->wide - (scale->wide > 2); k++)
            put_bar(page, MARGIN + i * scale->wide + k, bar_of(page->reading, scale, i), most);
    page->row += page->bars;
}

static void put_axis(struct page *page, const struct scale *scale)
{
    bool crowded = 10 / scale->seconds * scale->wide < 6;
    for (int second = 0; second <= 60; second += 10) {
        int col = MARGIN + second / scale->seconds * scale->wide;
        if (second == 60)
            sheet_put(page->sheet, page->row, col - 4, STYLE_AXIS, "60 s");
        else if (!crowded || second % 20 == 0)
            sheet_put(page->sheet, page->row, col, STYLE_AXIS, second == 0 ? "now" : "%d", second);
    }
    page->row++;
}

static void put_forecast(struct page *page)
{
    const struct reading *reading = page->reading;
    struct scale scale = scale_of(page->cols);
    int col = sheet_put(page->sheet, page->row, MARGIN, STYLE_HEAD, "the coming minute ");
    col = sheet_put(page->sheet, page->row, col, STYLE_NUMBER, "%s%s", reading->exact ? "" : "~",
                    show_count(reading_sum(reading)).text);
    if (page->cols >= 60)
        col = sheet_put(page->sheet, page->row, col, STYLE_LABEL, " due, at most %s in a second%s",
                        show_count(reading_most(reading)).text, reading->exact ? "" : " (estimated)");
    if (reading->alone)
        sheet_put(page->sheet, page->row, col, STYLE_LABEL, ", of %s",
                  reading->queue[0] == '\0' ? "\"\"" : reading->queue);
    page->row++;
    put_bars(page, &scale);
    put_axis(page, &scale);
}

/* ---- deferred -------------------------------------------------------------------------------------------- */

static bool defers(const struct reading *reading)
{
    return reading->deferred[0] != ABSENT;
}

static bool is_deferred_told(const struct reading *reading, int i)
{
    return i < DEFERRED_STOPPED || (reading->deferred[i] != ABSENT && reading->deferred[i] > 0);
}

static int deferreds_told(const struct reading *reading)
{
    int told = 0;
    for (int i = 0; i < DEFERREDS; i++)
        told += is_deferred_told(reading, i);
    return told;
}

static void put_deferred(struct page *page)
{
    int item = 1;
    if (!defers(page->reading))
        return;
    sheet_put(page->sheet, page->row, MARGIN, STYLE_HEAD, "put off because of");
    for (int i = 0; i < DEFERREDS; i++) {
        double rate = reading_deferred_rate(page->before, page->reading, (enum deferred)i);
        uint64_t count = page->reading->deferred[i];
        if (!is_deferred_told(page->reading, i))
            continue;
        /* A replica leaves all deliveries to its primary. */
        bool usual = i == DEFERRED_ROLE && page->reading->replica;
        put_item(page, item++, DEFERRED_NAMES[i], show_count(count).text,
                 usual       ? STYLE_LABEL
                 : rate > 0  ? STYLE_BAD
                 : count > 0 ? STYLE_WARN
                             : STYLE_LABEL);
    }
    page->row += rows_for(item, page->cols);
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

/* The rows of all parts except the bars and the table. A file does not tell how many came due, and how late. */
static int fixed_rows(const struct reading *reading, int cols, bool brief)
{
    int rows = 2 + (reading->warning[0] != '\0'), tells_due = !reading_is_store(reading);
    if (brief)
        return rows + 1 + 3 * tells_due + 2;
    rows += rows_for(levels_told(reading), cols) + 2;
    rows += rows_for(rates_told(reading), cols) + 4 * tells_due;
    return rows + (defers(reading) ? rows_for(deferreds_told(reading) + 1, cols) : 0);
}

static int gaps(const struct reading *reading)
{
    return 4 - reading_is_store(reading) + defers(reading) + (reading->queues > 0);
}

int frame_rows(const struct history *history, int cols)
{
    const struct reading *reading = &history->now;
    return fixed_rows(reading, cols, false) + BARS_USUAL + table_rows(reading) + gaps(reading) + 1;
}

int frame_cols(const struct history *history, int cols)
{
    int warning = MARGIN + (int)(strlen(WARNING) + strlen(history->now.warning));
    return warning > cols ? warning : cols;
}

static int limit(int value, int least, int most)
{
    return value > most ? most : value < least ? least : value;
}

/* Shares out the rows of the sheet. */
static void deal(struct page *page, int keys)
{
    int rows = page->sheet->rows - keys;
    page->brief = rows < fixed_rows(page->reading, page->cols, false) + BARS_MIN;
    int left = rows - fixed_rows(page->reading, page->cols, page->brief);
    int wanted = table_rows(page->reading);
    int some = wanted < QUEUES_MIN + 1 ? wanted : QUEUES_MIN + 1;
    page->airy = left >= BARS_USUAL + some + gaps(page->reading);
    if (page->airy)
        left -= gaps(page->reading);
    page->bars = limit(left - some, page->brief ? 1 : BARS_MIN, BARS_USUAL);
    page->queues = limit(left - page->bars, 0, wanted);
    page->levels = rows_for(levels_told(page->reading), page->cols);
    if (page->brief) { /* the other levels come before more than the usual bars */
        page->levels = limit(1 + left - page->queues - BARS_USUAL, 1, page->levels);
        left -= page->levels - 1;
    }
    page->bars = limit(left - page->queues, page->bars, BARS_MAX);
}

void frame_draw(struct sheet *sheet, const struct history *history, int cols, const char *notice,
                const char *keys)
{
    struct page page = {.sheet = sheet,
                        .history = history,
                        .reading = &history->now,
                        .before = history_before(history),
                        .cols = cols};
    deal(&page, *keys != '\0');
    put_title(&page, notice);
    put_state(&page);
    gap(&page);
    put_levels(&page);
    if (!reading_is_store(page.reading))
        put_due(&page);
    if (!page.brief)
        put_rates(&page);
    gap(&page);
    if (!reading_is_store(page.reading)) {
        put_lateness(&page);
        gap(&page);
    }
    put_forecast(&page);
    gap(&page);
    if (!page.brief)
        put_deferred(&page);
    if (defers(page.reading))
        gap(&page);
    table_put(&page);
    if (*keys == '\0')
        return;
    sheet_row(sheet, sheet->rows - 1, STYLE_LABEL);
    sheet_put(sheet, sheet->rows - 1, MARGIN, STYLE_LABEL, "%s", keys);
}
