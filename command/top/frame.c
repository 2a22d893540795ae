/* SPDX-License-Identifier: MIT
 *
 * From top to bottom: who is watched; levels; rates, with the history of firing; lateness; the forecast; what was put
 * off, and why; the largest schedules; the keys.
 *
 * Every part says how many rows it takes at a width; what is left over goes to the bars of the forecast, then to the
 * schedules, then to blank rows between the parts. Where it does not suffice the bars are low and the last parts are
 * left out: what a sheet has no room for is not drawn.
 */
#include "frame.h"

#include "figures.h"

#include <inttypes.h>
#include <string.h>

enum {
    ITEM = 19,      /* columns that a number takes with its name */
    BARS_MIN = 3,   /* rows */
    BARS_USUAL = 6, /* where there is room for anything */
    BARS_MAX = 14,
    SCHEDULES_MIN = 3,
    MARGIN = 1
};

/* ---- history ------------------------------------------------------------------------------------------------- */

const struct tw_reading *tw_history_before(const struct tw_history *history)
{
    return history->readings > 1 ? &history->before : NULL;
}

void tw_history_add(struct tw_history *history, const struct tw_reading *reading)
{
    bool same = history->readings > 0 && reading->at_ns == history->now.at_ns;
    if (!same)
        history->before = history->now;
    history->now = *reading;
    if (same)
        return; /* who is asked often gives the same answer again for a while */
    history->readings += history->readings < 2;
    if (history->readings < 2)
        return;
    memmove(history->rate + 1, history->rate, (TW_HISTORY - 1) * sizeof *history->rate);
    history->rate[0] = tw_reading_rate(&history->before, &history->now, TW_COUNT_FIRED);
    history->rates += history->rates < TW_HISTORY;
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

static struct tw_figure show_rate(double rate)
{
    struct tw_figure figure = {"-"};
    if (rate >= 100)
        return tw_figure_count((uint64_t)(rate + 0.5));
    if (rate >= 0)
        snprintf(figure.text, sizeof figure.text, "%.3g", rate);
    return figure;
}

static struct tw_figure show_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct tw_figure figure;
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(figure.text, sizeof figure.text, value >= 100 ? "%.0f %s" : "%.3g %s", value, units[unit]);
    return figure;
}

static struct tw_figure show_time(uint64_t ns)
{
    struct tw_figure figure = {"-"};
    if (ns == TW_ABSENT)
        return figure;
    return ns == 0 ? (struct tw_figure){"0"} : tw_figure_time(ns, 1);
}

static struct tw_figure show_count(uint64_t count)
{
    return count == TW_ABSENT ? (struct tw_figure){"-"} : tw_figure_short(count);
}

/* ---- the picture being drawn --------------------------------------------------------------------------------- */

/* What is left of the sheet, and how it is dealt out. */
struct layout {
    struct tw_sheet *sheet;
    const struct tw_history *history;
    const struct tw_reading *reading, *before;
    int cols, row;
    int bars, schedules; /* rows */
    bool airy;           /* a blank row between the parts */
    bool brief;          /* only what matters most */
};

static void gap(struct layout *layout)
{
    layout->row += layout->airy;
}

static int items_in_a_row(int cols)
{
    int items = (cols - MARGIN) / ITEM;
    return items < 1 ? 1 : items;
}

static int rows_for(int items, int cols)
{
    int in_a_row = items_in_a_row(cols);
    return (items + in_a_row - 1) / in_a_row;
}

/* Puts the i-th of some numbers in its place. */
static void put_item(struct layout *layout, int i, const char *name, const char *value, enum tw_style style)
{
    int in_a_row = items_in_a_row(layout->cols);
    int row = layout->row + i / in_a_row, col = MARGIN + i % in_a_row * ITEM;
    col = tw_sheet_put(layout->sheet, row, col, TW_STYLE_LABEL, "%s ", name);
    tw_sheet_put(layout->sheet, row, col, style, "%s", value);
}

/* ---- who is watched ------------------------------------------------------------------------------------------ */

static void put_title(struct layout *layout, const char *notice)
{
    const struct tw_reading *reading = layout->reading;
    const char *title =
        strcmp(reading->source, "redis") == 0 ? "tickwheel top  " : "tickwheel top  scheduler  ";
    tw_sheet_row(layout->sheet, 0, *notice != '\0' ? TW_STYLE_ALARM : TW_STYLE_TITLE);
    if (*notice != '\0')
        tw_sheet_put(layout->sheet, 0, MARGIN, TW_STYLE_ALARM, "%s", notice);
    else
        tw_sheet_put(layout->sheet, 0, MARGIN, TW_STYLE_TITLE, "%s%s", title, reading->address);
    layout->row = 1;
}

static void put_state(struct layout *layout)
{
    const struct tw_reading *reading = layout->reading;
    struct tw_figure up = reading->up_s == 0 ? (struct tw_figure){"0 s"} : tw_figure_time(reading->up_s, 1e9);
    int col = tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_LABEL, "%s, %s, up %s",
                           reading->version, reading->state, up.text);
    if (reading->durability[0] != '\0')
        tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_LABEL, ", %s", reading->durability);
    layout->row++;
    if (reading->warning[0] == '\0')
        return;
    tw_sheet_put(layout->sheet, layout->row++, MARGIN, TW_STYLE_WARN, "warning: %s", reading->warning);
}

/* ---- levels and rates ---------------------------------------------------------------------------------------- */

static int levels_told(const struct tw_reading *reading)
{
    int told = 0;
    for (int i = 0; i < TW_COUNT_LEVELS; i++)
        told += reading->count[i] != TW_ABSENT;
    return told;
}

static enum tw_style style_of_level(int level, uint64_t count)
{
    if (level == TW_COUNT_PENDING)
        return TW_STYLE_NUMBER;
    return (level == TW_COUNT_OVERDUE || level == TW_COUNT_HELD) && count > 0 ? TW_STYLE_WARN : TW_STYLE_PLAIN;
}

static void put_levels(struct layout *layout)
{
    int item = 0, most = layout->brief ? items_in_a_row(layout->cols) : TW_COUNT_LEVELS;
    for (int i = 0; i < TW_COUNT_LEVELS; i++) {
        uint64_t count = layout->reading->count[i];
        if (count != TW_ABSENT && item < most)
            put_item(layout, item++, TW_COUNT_NAMES[i],
                     i == TW_COUNT_MEMORY ? show_bytes(count).text : show_count(count).text,
                     style_of_level(i, count));
    }
    layout->row += rows_for(item, layout->cols);
}

static double most_rate(const struct tw_history *history, int count)
{
    double most = 0;
    for (int i = 0; i < count && i < history->rates; i++)
        if (history->rate[i] > most)
            most = history->rate[i];
    return most;
}

/* The history of firing, the latest on the right. */
static void put_spark(struct layout *layout, int col)
{
    const struct tw_history *history = layout->history;
    int room = layout->cols - MARGIN - col;
    double most = most_rate(history, room);
    for (int i = 0; i < room && i < history->rates; i++) {
        double rate = history->rate[i];
        int eighths = most <= 0 || rate <= 0 ? 0 : (int)(rate / most * 7) + 1;
        tw_sheet_block(layout->sheet, layout->row, layout->cols - MARGIN - 1 - i, TW_STYLE_SPARK, eighths);
    }
}

static double rate_of(const struct layout *layout, enum tw_count count)
{
    return tw_reading_rate(layout->before, layout->reading, count);
}

static void put_firing(struct layout *layout)
{
    int col = tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_LABEL, "firing ");
    col = tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_NUMBER, "%s",
                       show_rate(rate_of(layout, TW_COUNT_FIRED)).text);
    col = tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_LABEL, "/s");
    if (layout->cols >= 60)
        col = tw_sheet_put(layout->sheet, layout->row, MARGIN + ITEM, TW_STYLE_LABEL, "in all %s",
                           show_count(layout->reading->count[TW_COUNT_FIRED]).text);
    put_spark(layout, layout->cols >= 60 && col < 2 * ITEM ? 2 * ITEM + MARGIN : col + 2);
    layout->row++;
}

static int rates_told(const struct tw_reading *reading)
{
    int told = 0;
    for (int i = TW_COUNT_ADDED; i < TW_COUNTS; i++)
        told += reading->count[i] != TW_ABSENT && (i <= TW_COUNT_MOVED || reading->count[i] > 0);
    return told;
}

/* Those that are rare only if there have been any. */
static void put_rates(struct layout *layout)
{
    int item = 0;
    for (int i = TW_COUNT_ADDED; i < TW_COUNTS; i++) {
        struct tw_figure figure;
        uint64_t count = layout->reading->count[i];
        if (count == TW_ABSENT || (i > TW_COUNT_MOVED && count == 0))
            continue;
        snprintf(figure.text, sizeof figure.text, "%.40s/s", show_rate(rate_of(layout, (enum tw_count)i)).text);
        put_item(layout, item++, TW_COUNT_NAMES[i], figure.text,
                 i == TW_COUNT_DEAD || i == TW_COUNT_REFUSED ? TW_STYLE_WARN : TW_STYLE_PLAIN);
    }
    layout->row += rows_for(item, layout->cols);
}

/* ---- lateness ------------------------------------------------------------------------------------------------ */

#define LATE_NS 1000000000 /* a second is worth a second look */
enum { COLUMN = 10, LATENESS = 12, NARROW_COLUMN = 8, NARROW_LATENESS = 7 };

static void put_lateness_row(struct layout *layout, const char *name, const struct tw_lateness_of *lateness)
{
    const uint64_t values[] = {lateness->p50, lateness->p90, lateness->p99, lateness->p999, lateness->max};
    bool narrow = layout->cols < LATENESS + 5 * COLUMN + MARGIN;
    tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_LABEL, "%s", name);
    for (int i = 0, at = 0; i < 5; i++) {
        if (narrow && i == 3)
            continue;
        int end = MARGIN + (narrow ? NARROW_LATENESS : LATENESS) + (narrow ? NARROW_COLUMN : COLUMN) * ++at;
        struct tw_figure figure = show_time(lateness->calls == 0 ? TW_ABSENT : values[i]);
        enum tw_style style = values[i] != TW_ABSENT && values[i] >= LATE_NS ? TW_STYLE_WARN : TW_STYLE_PLAIN;
        tw_sheet_put(layout->sheet, layout->row, end - (int)strlen(figure.text), style, "%s", figure.text);
    }
    if (!narrow && layout->cols >= LATENESS + 5 * COLUMN + 14 && lateness->calls != TW_ABSENT)
        tw_sheet_put(layout->sheet, layout->row, MARGIN + LATENESS + 5 * COLUMN + 1, TW_STYLE_LABEL, "of %s",
                     show_count(lateness->calls).text);
    layout->row++;
}

static void put_lateness(struct layout *layout)
{
    static const char *const names[] = {"p50", "p90", "p99", "p99.9", "max"};
    bool narrow = layout->cols < LATENESS + 5 * COLUMN + MARGIN;
    tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_HEAD, narrow ? "late" : "lateness");
    for (int i = 0, at = 0; i < 5; i++) {
        if (narrow && i == 3)
            continue;
        int end = MARGIN + (narrow ? NARROW_LATENESS : LATENESS) + (narrow ? NARROW_COLUMN : COLUMN) * ++at;
        tw_sheet_put(layout->sheet, layout->row, end - (int)strlen(names[i]), TW_STYLE_LABEL, "%s", names[i]);
    }
    layout->row++;
    put_lateness_row(layout, narrow ? "10 s" : "past 10 s", &layout->reading->recent);
    if (!layout->brief)
        put_lateness_row(layout, narrow ? "all" : "since start", &layout->reading->all);
}

/* ---- the forecast -------------------------------------------------------------------------------------------- */

/* How the coming minute is dealt out to columns: so many columns a bar, or so many seconds a bar. */
struct scale {
    int wide, seconds, bars;
};

static struct scale scale_of(int cols)
{
    struct scale scale = {1, 1, TW_READING_STEPS};
    int room = cols - 2 * MARGIN;
    if (room >= TW_READING_STEPS)
        scale.wide = room / TW_READING_STEPS > 3 ? 3 : room / TW_READING_STEPS;
    while (scale.bars > room && scale.bars > 1) {
        static const int divisors[] = {1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60};
        for (size_t i = 0; i < sizeof divisors / sizeof divisors[0] && scale.bars > room; i++) {
            scale.seconds = divisors[i];
            scale.bars = TW_READING_STEPS / divisors[i];
        }
        if (scale.bars > room)
            break;
    }
    return scale;
}

static uint64_t bar_of(const struct tw_reading *reading, const struct scale *scale, int i)
{
    uint64_t sum = 0;
    for (int k = 0; k < scale->seconds; k++)
        sum += reading->forecast[i * scale->seconds + k];
    return sum;
}

/* A bar, in eighths of a row from below; what is not nothing shows. */
static void put_bar(struct layout *layout, int col, uint64_t count, uint64_t most)
{
    int high = layout->bars * 8;
    int eighths = (int)((double)count / (double)most * high + 0.5);
    eighths = eighths == 0 && count > 0 ? 1 : eighths;
    for (int row = 0; row < layout->bars; row++) {
        int left = eighths - row * 8;
        int shade = layout->bars < 2 ? 7 : row * 7 / (layout->bars - 1);
        tw_sheet_block(layout->sheet, layout->row + layout->bars - 1 - row, col,
                       (enum tw_style)(TW_STYLE_BARS + shade),
                       left < 0   ? 0
                       : left > 8 ? 8
                                  : left);
    }
}

static void put_bars(struct layout *layout, const struct scale *scale)
{
    uint64_t most = 0;
    for (int i = 0; i < scale->bars; i++)
        if (bar_of(layout->reading, scale, i) > most)
            most = bar_of(layout->reading, scale, i);
    for (int i = 0; most > 0 && i < scale->bars; i++)
        for (int k = 0; k < scale->wide - (scale->wide > 2); k++)
            put_bar(layout, MARGIN + i * scale->wide + k, bar_of(layout->reading, scale, i), most);
    layout->row += layout->bars;
}

static void put_axis(struct layout *layout, const struct scale *scale)
{
    bool crowded = 10 / scale->seconds * scale->wide < 6;
    for (int second = 0; second <= 60; second += 10) {
        int col = MARGIN + second / scale->seconds * scale->wide;
        if (second == 60)
            tw_sheet_put(layout->sheet, layout->row, col - 4, TW_STYLE_AXIS, "60 s");
        else if (!crowded || second % 20 == 0)
            tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_AXIS, second == 0 ? "now" : "%d", second);
    }
    layout->row++;
}

static void put_forecast(struct layout *layout)
{
    const struct tw_reading *reading = layout->reading;
    struct scale scale = scale_of(layout->cols);
    int col = tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_HEAD, "the coming minute ");
    col = tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_NUMBER, "%s%s", reading->exact ? "" : "~",
                       show_count(tw_reading_sum(reading)).text);
    if (layout->cols >= 60)
        col = tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_LABEL, " due, at most %s in a second%s",
                           show_count(tw_reading_most(reading)).text, reading->exact ? "" : " (estimated)");
    if (reading->alone)
        tw_sheet_put(layout->sheet, layout->row, col, TW_STYLE_LABEL, ", of %s",
                     reading->schedule[0] == '\0' ? "\"\"" : reading->schedule);
    layout->row++;
    put_bars(layout, &scale);
    put_axis(layout, &scale);
}

/* ---- deferred, schedules ------------------------------------------------------------------------------------- */

static bool defers(const struct tw_reading *reading)
{
    return reading->deferred[0] != TW_ABSENT;
}

static void put_deferred(struct layout *layout)
{
    int item = 1;
    if (!defers(layout->reading))
        return;
    tw_sheet_put(layout->sheet, layout->row, MARGIN, TW_STYLE_HEAD, "put off because of");
    for (int i = 0; i < TW_DEFERREDS; i++) {
        double rate = tw_reading_deferred_rate(layout->before, layout->reading, (enum tw_deferred)i);
        uint64_t count = layout->reading->deferred[i];
        put_item(layout, item++, TW_DEFERRED_NAMES[i], show_count(count).text,
                 rate > 0    ? TW_STYLE_BAD
                 : count > 0 ? TW_STYLE_WARN
                             : TW_STYLE_LABEL);
    }
    layout->row += rows_for(item, layout->cols);
}

/* The schedule of that name and database, as it was before; NULL: it was not among those told. */
static const struct tw_schedule_seen *seen_before(const struct layout *layout,
                                                  const struct tw_schedule_seen *seen)
{
    for (size_t i = 0; layout->before != NULL && i < layout->before->schedules; i++) {
        const struct tw_schedule_seen *one = &layout->before->seen[i];
        if (one->db == seen->db && one->hash == seen->hash)
            return one;
    }
    return NULL;
}

static double schedule_rate(const struct layout *layout, const struct tw_schedule_seen *seen)
{
    const struct tw_schedule_seen *before = seen_before(layout, seen);
    uint64_t ns = layout->before == NULL ? 0 : layout->reading->at_ns - layout->before->at_ns;
    if (before == NULL || ns == 0 || seen->fired < before->fired ||
        !tw_reading_goes_on(layout->before, layout->reading))
        return -1;
    return (double)(seen->fired - before->fired) * 1e9 / (double)ns;
}

enum { SCHEDULE_COLUMNS = 5, SCHEDULE_COLUMN = 11 };

/* A row of the table: the name takes what the numbers leave, and where that is little there are fewer of them. */
static void put_cells(struct layout *layout, enum tw_style style, const char *name,
                      const char *const cells[SCHEDULE_COLUMNS])
{
    int columns = (layout->cols - 18) / SCHEDULE_COLUMN;
    columns = columns > SCHEDULE_COLUMNS ? SCHEDULE_COLUMNS : columns < 1 ? 1 : columns;
    int room = layout->cols - 2 * MARGIN - columns * SCHEDULE_COLUMN;
    tw_sheet_put(layout->sheet, layout->row, MARGIN, style, "%.*s", room < 1 ? 1 : room, name);
    for (int i = 0; i < columns; i++)
        tw_sheet_put(layout->sheet, layout->row,
                     MARGIN + room + (i + 1) * SCHEDULE_COLUMN - (int)strlen(cells[i]),
                     style == TW_STYLE_PLAIN ? style : TW_STYLE_LABEL, "%s", cells[i]);
    layout->row++;
}

static void put_schedule(struct layout *layout, const struct tw_schedule_seen *seen)
{
    char name[TW_READING_NAME + 32] = "";
    struct tw_figure tasks = show_count(seen->tasks), held = show_count(seen->held);
    struct tw_figure fired = show_count(seen->fired), dead = show_count(seen->dead);
    struct tw_figure rate = show_rate(schedule_rate(layout, seen));
    const char *const cells[] = {tasks.text, rate.text, fired.text, held.text, dead.text};
    if (seen->db > 0)
        snprintf(name, sizeof name, "db%" PRIu64 " ", seen->db);
    size_t at = strlen(name);
    snprintf(name + at, sizeof name - at, "%s", seen->name);
    put_cells(layout, TW_STYLE_PLAIN, name, cells);
}

static void put_schedules(struct layout *layout)
{
    static const char *const names[] = {"tasks", "fired/s", "fired", "held", "dead"};
    if (layout->schedules < 2)
        return;
    put_cells(layout, TW_STYLE_HEAD, layout->reading->alone ? "schedule" : "largest schedules", names);
    for (int i = 0; i + 1 < layout->schedules; i++)
        put_schedule(layout, &layout->reading->seen[i]);
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

/* Rows that every part but the bars and the schedules takes. */
static int fixed_rows(const struct tw_reading *reading, int cols, bool brief)
{
    int rows = 2 + (reading->warning[0] != '\0');
    if (brief)
        return rows + 1 + 1 + 2 + 2;
    rows += rows_for(levels_told(reading), cols);
    rows += 1 + rows_for(rates_told(reading), cols) + 3 + 2;
    return rows + (defers(reading) ? rows_for(TW_DEFERREDS + 1, cols) : 0);
}

/* Rows of the table of schedules, its head among them. */
static int schedule_rows(const struct tw_reading *reading)
{
    return reading->schedules == 0 ? 0 : (int)reading->schedules + 1;
}

static int gaps(const struct tw_reading *reading)
{
    return 4 + defers(reading) + (reading->schedules > 0);
}

int tw_frame_rows(const struct tw_history *history, int cols)
{
    const struct tw_reading *reading = &history->now;
    return fixed_rows(reading, cols, false) + BARS_USUAL + schedule_rows(reading) + gaps(reading) + 1;
}

static int limit(int value, int least, int most)
{
    return value > most ? most : value < least ? least : value;
}

/* Deals out the rows. */
static void deal(struct layout *layout, int keys)
{
    int rows = layout->sheet->rows - keys;
    layout->brief = rows < fixed_rows(layout->reading, layout->cols, false) + BARS_MIN;
    int left = rows - fixed_rows(layout->reading, layout->cols, layout->brief);
    int wanted = schedule_rows(layout->reading);
    int some = wanted < SCHEDULES_MIN + 1 ? wanted : SCHEDULES_MIN + 1;
    layout->airy = left >= BARS_USUAL + some + gaps(layout->reading);
    if (layout->airy)
        left -= gaps(layout->reading);
    layout->bars = limit(left - some, layout->brief ? 1 : BARS_MIN, BARS_USUAL);
    layout->schedules = limit(left - layout->bars, 0, wanted);
    layout->bars = limit(left - layout->schedules, layout->bars, BARS_MAX);
}

void tw_frame_draw(struct tw_sheet *sheet, const struct tw_history *history, const char *notice,
                   const char *keys)
{
    struct layout layout = {.sheet = sheet,
                            .history = history,
                            .reading = &history->now,
                            .before = tw_history_before(history),
                            .cols = sheet->cols};
    deal(&layout, *keys != '\0');
    put_title(&layout, notice);
    put_state(&layout);
    gap(&layout);
    put_levels(&layout);
    put_firing(&layout);
    if (!layout.brief)
        put_rates(&layout);
    gap(&layout);
    put_lateness(&layout);
    gap(&layout);
    put_forecast(&layout);
    gap(&layout);
    if (!layout.brief)
        put_deferred(&layout);
    if (defers(layout.reading))
        gap(&layout);
    put_schedules(&layout);
    if (*keys == '\0')
        return;
    tw_sheet_row(sheet, sheet->rows - 1, TW_STYLE_LABEL);
    tw_sheet_put(sheet, sheet->rows - 1, MARGIN, TW_STYLE_LABEL, "%s", keys);
}
