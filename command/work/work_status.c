/* SPDX-License-Identifier: MIT */
#include "work_status.h"

#include "command.h"
#include "printable.h"
#include "screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 300 }; /* of an id or an error, which may be as long as 64 KiB */
static const char COMMAND[] = "tickwheel work";

/* Prints the names of the queues, separated by commas. */
static void print_queues(const struct work_options *options, FILE *out)
{
    for (size_t i = 0; i < options->queues; i++) {
        fputs(i > 0 ? ", " : "", out);
        printable_write(tw_text(options->queue[i]), false, SIZE_MAX, out);
    }
}

void work_say_ready(const struct work_options *options, const char *address)
{
    char *names = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&names, &size);
    if (out == NULL)
        return;
    print_queues(options, out);
    if (fclose(out) == 0) {
        screen_hide();
        complain("%s: ready; taking from %s at %s", COMMAND, names, address);
    }
    free(names);
}

void work_say_not_yours(const struct taken *taken)
{
    if (!screen_can_tell())
        return;
    screen_hide();
    fprintf(stderr, "%s: ", COMMAND);
    printable_write(tw_text(taken->queue), false, SIZE_MAX, stderr);
    fputc(' ', stderr);
    printable_write(taken->id, false, COLUMNS, stderr);
    complain(": attempt %" PRIu64
             " is not yours any more (its command runs on, and its result counts for nothing)",
             taken->attempt);
}

void work_say_failed(struct news *news, const struct taken *taken, bool dead, const char *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return;
    printable_write(tw_text(taken->queue), false, SIZE_MAX, out);
    fputc(' ', out);
    printable_write(taken->id, false, COLUMNS, out);
    if (dead)
        fprintf(out, ": dead after %" PRIu64 " attempt%s", taken->attempt, taken->attempt == 1 ? "" : "s");
    else
        fprintf(out, ": attempt %" PRIu64 " has failed", taken->attempt);
    if (error != NULL)
        fputs(": ", out);
    if (error != NULL)
        printable_write(tw_text(error), false, COLUMNS, out);
    if (fclose(out) == 0)
        news_task(news, text);
    free(text);
}

void work_show_status(const struct source *source, const struct work_counts *counts, size_t running,
                      bool stopping)
{
    char state[SOURCE_STATUS], text[SOURCE_STATUS + 200], back[48] = "";
    if (!screen_live())
        return;
    source->kind->tell(source, state);
    if (counts->of[OUTCOME_BACK] > 0)
        snprintf(back, sizeof back, "%" PRIu64 " given back, ", counts->of[OUTCOME_BACK]);
    snprintf(text, sizeof text, "%" PRIu64 " done, %" PRIu64 " failed, %s%zu running, %s",
             counts->of[OUTCOME_DONE], counts->of[OUTCOME_FAILED] + counts->of[OUTCOME_DEAD], back, running,
             stopping ? "stopping" : state);
    screen_show(text);
}

void work_say_stopped(const struct work_counts *counts)
{
    screen_hide();
    complain("%s: stopped; %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " died, %" PRIu64
             " given back, %" PRIu64 " not yours",
             COMMAND, counts->of[OUTCOME_DONE], counts->of[OUTCOME_FAILED] + counts->of[OUTCOME_DEAD],
             counts->of[OUTCOME_DEAD], counts->of[OUTCOME_BACK], counts->of[OUTCOME_NOT_YOURS]);
}
