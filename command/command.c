/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
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

int options_read(const struct option_reader *reader, int argc, char **argv, void *options)
{
    opterr = 0; /* we print the errors, not getopt_long() */
    for (int code; (code = getopt_long(argc, argv, reader->letters, reader->words, NULL)) != -1;) {
        if (code == 'h' || code == OPTION_HELP) {
            reader->help();
            return COMMAND_GOOD;
        }
        if (code == '?' || code == ':')
            return complain_option(code, argv);
        if (!reader->take(code, options))
            return COMMAND_INPUT;
    }
    return -1;
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

bool option_refuse(const char *command, const char *option, const char *expected, const char *found)
{
    complain("%s: %s: expected %s, found \"%s\"", command, option, expected, found);
    return false;
}

bool option_number(const char *command, const char *option, uint64_t least, uint64_t most, uint64_t *number)
{
    char expected[80];
    if (number_parse(optarg, most, number) && *number >= least)
        return true;
    snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, least, most);
    return option_refuse(command, option, expected, optarg);
}
