/* SPDX-License-Identifier: MIT
 *
 * Shared by all files of the command: the subcommands, the exit statuses, error messages, signals and options.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COMMAND_GOOD = 0,
    /* The wheel fired a timer wrongly or refused one, a file cannot be written, or a server does not answer. */
    COMMAND_WRONG = 1,
    COMMAND_INPUT = 2 /* the arguments or the trace are not valid */
};

/* The subcommands: argv[0] is the subcommand's own name. Each returns an exit status. */
int command_run(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_trace_replay(int argc, char **argv); /* argv[0] is "trace replay" */
int command_trace_draw(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_top(int argc, char **argv);
int command_work(int argc, char **argv);

/* Parts that need the store. A build without it has store_absent.c in their place: each prints an error. */
struct engine;
struct top_options;
struct feed;
struct source;
struct source_events;
struct timers;
struct work_options;
int command_put(int argc, char **argv);
int command_tasks(int argc, char **argv);
int command_restore(int argc, char **argv);
const struct engine *command_run_store(void);                      /* run --store; NULL after an error */
struct feed *command_top_store(const struct top_options *options); /* top --store; NULL after an error */
struct source *command_work_store(const struct work_options *options, struct timers *timers,
                                  const struct source_events *events); /* the same for work --store */

/* Prints one line on standard error. A terminal shows its text and does not obey it (printable.h), for names in
 * a file and messages about it may hold bytes of any kind. Without memory it prints nothing. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Adds the signals that stop a service cleanly: SIGINT, SIGTERM, and SIGHUP unless the parent ignores it, as
 * nohup does. */
void signals_to_stop(sigset_t *set);

/* Returns whether a signal that comes during a stop asks for an end at once. A SIGHUP does not: a terminal that
 * closes sends two, one by its shell, and then one by the kernel. */
bool signal_hurries(int number);

/* Lets these signals call `handler`. A call that waits then returns. A write to a reader that has gone returns
 * an error. */
void signals_catch(void (*handler)(int number));

/* An option, as its command describes it with the functions below. */
struct option_row {
    const char *command, *name; /* for errors: "tickwheel run", "--jobs" */
    /* Takes the value, which is in optarg. Returns false after it has printed an error. */
    bool (*take)(const struct option_row *row);
    void *to;             /* where the value goes */
    uint64_t least, most; /* of a number, or of a duration in milliseconds */
    uint64_t zero;        /* the value that 0 stands for */
    bool given;
};
typedef bool option_take_fn(const struct option_row *row);

enum { OPTIONS_MAX = 24, HELP_PARTS = 4 };

/* The options of a command. A command sets the first three members, and then adds its options. */
struct option_table {
    const char *command;          /* for errors */
    const char *help[HELP_PARTS]; /* the text of --help and -h, which each command has */
    size_t count;
    struct option_row row[OPTIONS_MAX];
    struct option words[OPTIONS_MAX + 2]; /* for getopt_long() */
};

/* Add an option: without a value, which sets *to; with a text; with a number, or a duration in nanoseconds or
 * milliseconds; and with a value that `take` reads, a number or not. `name` begins with two dashes. */
void options_flag(struct option_table *table, const char *name, bool *to);
void options_text(struct option_table *table, const char *name, const char **to);
struct option_row *options_number(struct option_table *table, const char *name, uint64_t *to, uint64_t least,
                                  uint64_t most);
struct option_row *options_ns(struct option_table *table, const char *name, uint64_t *to, uint64_t least_ms,
                              uint64_t most_ms);
struct option_row *options_ms(struct option_table *table, const char *name, uint64_t *to, uint64_t least_ms,
                              uint64_t most_ms);
struct option_row *options_range(struct option_table *table, const char *name, option_take_fn *take,
                                 uint64_t *to, uint64_t least, uint64_t most);
struct option_row *options_other(struct option_table *table, const char *name, option_take_fn *take, void *to);

/* Reads the options of a command line and leaves optind at the first argument.
 * Returns: -1 to go on, or an exit status after it has printed the help text or an error. */
int options_read(struct option_table *table, int argc, char **argv);

/* Returns whether the command line has the option. */
bool options_given(const struct option_table *table, const char *name);

/* Prints that the value in optarg is wrong, and returns false.
 * Example: option_refuse(row, "nx, xx, gt or lt"). */
bool option_refuse(const struct option_row *row, const char *expected);

/* Reads a whole string as a decimal number. Returns false if it is not a number, or above `max`. */
bool number_parse(const char *text, uint64_t max, uint64_t *number);

#endif
