/* SPDX-License-Identifier: MIT
 *
 * Shared by all files of the command: the subcommands, the exit statuses, error messages, signals and options.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COMMAND_GOOD = 0,
    /* The wheel fired a timer wrongly or refused one, a file cannot be written, or a server does not
     * answer. */
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

/* Prints one line on standard error. Erases the progress bar first. */
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

/* The options of a subcommand. In `words`, "help" has the value OPTION_HELP, and no value is the code of a
 * letter: an error message names a letter as -o, and every other option as the user wrote it. */
struct option_reader {
    const char *letters; /* short options for getopt_long(): ":h", then more letters, for example ":ho:" */
    const struct option *words;            /* long options */
    bool (*take)(int code, void *options); /* takes the value in optarg; false: it has printed an error */
    void (*help)(void);                    /* prints the help text */
};

enum { OPTION_HELP = 0x2000 };

/* Reads the options of a command line and leaves optind at the first argument.
 * Returns: -1 to go on, or an exit status after it has printed the help text or an error. */
int options_read(const struct option_reader *reader, int argc, char **argv, void *options);

/* Prints that the value of an option is wrong, and returns false.
 * Example: option_refuse("tickwheel put", "--if", "nx, xx, gt or lt", "no"). */
bool option_refuse(const char *command, const char *option, const char *expected, const char *found);

/* Take the value in optarg: a number, or a duration. Return false after they have printed its range as an
 * error. */
bool option_number(const char *command, const char *option, uint64_t least, uint64_t most, uint64_t *number);
bool option_time(const char *command, const char *option, uint64_t least_ms, uint64_t most_ms, uint64_t *ns);
bool option_ms(const char *command, const char *option, uint64_t least_ms, uint64_t most_ms, uint64_t *ms);

/* Reads a whole string as a decimal number. Returns false if it is not a number, or above `max`. */
bool number_parse(const char *text, uint64_t max, uint64_t *number);

#endif
