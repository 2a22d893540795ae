/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "printable.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The codes of the options of a table, and of --help, for getopt_long(). They are beyond all letters: an error
 * names a letter as -o, and every other option as the user wrote it. */
enum { OPTION = 0x1000, OPTION_HELP = 0x2000 };

/* Prints the whole line by one call, so that lines of several threads do not mix. */
static void print_cleaned(const char *text)
{
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return;
    printable_write(tw_text(text), false, SIZE_MAX, out);
    fputc('\n', out);
    if (fclose(out) == 0)
        fputs(line, stderr);
    free(line);
}

void complain(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    bool made = vasprintf(&text, format, arguments) >= 0;
    va_end(arguments);
    if (made)
        print_cleaned(text);
    free(made ? text : NULL);
}

void signals_to_stop(sigset_t *set)
{
    struct sigaction hangup;
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(set, SIGHUP);
}

bool signal_hurries(int number)
{
    return number != SIGHUP;
}

void signals_catch(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler};
    sigset_t set;
    sigemptyset(&set);
    signals_to_stop(&set);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&set, number) == 1)
            sigaction(number, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Prints the error about an option for which getopt_long() returned `code`, '?' or ':'. */
static int complain_option(int code, char **argv)
{
    const char *problem = code == ':' ? "needs a value" : "is not known";
    /* A short option may stand inside a cluster (-xo), so its letter names it. A long option is the argument
     * before optind. */
    if (optopt > ' ' && optopt < 127)
        complain("tickwheel %s: option -%c %s (try: tickwheel %s --help)", argv[0], optopt, problem, argv[0]);
    else
        complain("tickwheel %s: option %s %s (try: tickwheel %s --help)", argv[0], argv[optind - 1],
                 optopt == 0 || code == ':' ? problem : "takes no value", argv[0]);
    return COMMAND_INPUT;
}

bool number_parse(const char *text, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *number = value;
    return value <= max;
}

/* ---- options --------------------------------------------------------------------------------------------- */

int options_read(struct option_table *table, int argc, char **argv)
{
    opterr = 0; /* we print the errors, not getopt_long() */
    table->words[table->count] = (struct option){"help", no_argument, NULL, OPTION_HELP};
    for (int code; (code = getopt_long(argc, argv, ":h", table->words, NULL)) != -1;) {
        if (code == 'h' || code == OPTION_HELP) {
            for (int i = 0; i < HELP_PARTS && table->help[i] != NULL; i++)
                fputs(table->help[i], stdout);
            return COMMAND_GOOD;
        }
        if (code == '?' || code == ':')
            return complain_option(code, argv);
        struct option_row *row = &table->row[code - OPTION];
        row->given = true;
        if (!row->take(row))
            return COMMAND_INPUT;
    }
    return -1;
}

bool options_given(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->row[i].name, name) == 0)
            return table->row[i].given;
    return false;
}

bool option_refuse(const struct option_row *row, const char *expected)
{
    complain("%s: %s: expected %s, found \"%s\"", row->command, row->name, expected, optarg);
    return false;
}

/* ---- kinds of options ------------------------------------------------------------------------------------ */

static struct option_row *add(struct option_table *table, const char *name, int has_value, option_take_fn *take,
                              void *to)
{
    struct option_row *row = &table->row[table->count];
    *row = (struct option_row){.command = table->command, .name = name, .take = take, .to = to};
    table->words[table->count] = (struct option){name + 2, has_value, NULL, OPTION + (int)table->count};
    table->count++;
    return row;
}

static bool take_flag(const struct option_row *row)
{
    bool *flag = row->to;
    return *flag = true;
}

static bool take_text(const struct option_row *row)
{
    const char **text = row->to;
    *text = optarg;
    return true;
}

static bool take_number(const struct option_row *row)
{
    uint64_t *number = row->to;
    char expected[80];
    if (!number_parse(optarg, row->most, number) || *number < row->least) {
        snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, row->least, row->most);
        return option_refuse(row, expected);
    }
    *number = *number == 0 ? row->zero : *number;
    return true;
}

void options_flag(struct option_table *table, const char *name, bool *to)
{
    add(table, name, no_argument, take_flag, to);
}

void options_text(struct option_table *table, const char *name, const char **to)
{
    add(table, name, required_argument, take_text, to);
}

struct option_row *options_number(struct option_table *table, const char *name, uint64_t *to, uint64_t least,
                                  uint64_t most)
{
    return options_range(table, name, take_number, to, least, most);
}

struct option_row *options_range(struct option_table *table, const char *name, option_take_fn *take,
                                 uint64_t *to, uint64_t least, uint64_t most)
{
    struct option_row *row = options_other(table, name, take, to);
    row->least = least;
    row->most = most;
    return row;
}

struct option_row *options_other(struct option_table *table, const char *name, option_take_fn *take, void *to)
{
    return add(table, name, required_argument, take, to);
}
