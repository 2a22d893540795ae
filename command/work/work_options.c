/* SPDX-License-Identifier: MIT */
#include "work_options.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP_HEAD[] =
    "usage: tickwheel work [--redis URL] [OPTIONS] QUEUE... --exec CMD\n"
    "       tickwheel work --store FILE [OPTIONS] QUEUE... --exec CMD\n"
    "\n"
    "A worker: takes tasks that are due from queues of a Redis server with the\n"
    "module (TW.PUT), or from queues of an SQLite file, and runs CMD for each. A\n"
    "CMD that ends with status 0 has done its task; with 75 (EX_TEMPFAIL) it says\n"
    "that it is too early. Otherwise the attempt has failed. The next one comes after\n"
    "the task's backoff and, after the last of its tries, the task is dead. Runs\n"
    "until SIGINT (Ctrl-C), SIGTERM or SIGHUP. docs/work.md has a tour. Examples:\n"
    "\n"
    "  tickwheel work orders mails --exec ./notify\n"
    "  tickwheel work --redis rediss://db1 --jobs 16 orders --exec ./notify\n"
    "  tickwheel work --store shop.db orders --exec ./notify\n"
    "\n"
    "  --exec CMD      run CMD in a shell for each task. CMD gets the id and the\n"
    "                  payload on its standard input, and TICKWHEEL_QUEUE (the\n"
    "                  queue's name), TICKWHEEL_ID, TICKWHEEL_PAYLOAD (its first\n"
    "                  value), TICKWHEEL_ATTEMPT, TICKWHEEL_TOKEN, TICKWHEEL_DUE,\n"
    "                  TICKWHEEL_LATE_US (of a file) and TICKWHEEL_MISSED_PERIODS\n"
    "                  (further periods for which the call stands) in its\n"
    "                  environment\n"
    "  --store FILE    take from queues of this SQLite file instead of a server.\n"
    "                  While another process runs the tasks of the file, wait, and\n"
    "                  take over when it ends\n"
    "  --jobs N        run at most N commands at once, 1 to 1024 (default 4)\n"
    "  --timeout TIME  a command that runs for longer, 1ms to 365d, gets SIGTERM and,\n"
    "                  a second later, SIGKILL, with its whole process group. Its\n"
    "                  attempt has failed, whatever its exit status (default: none)\n"
    "  --leave         let the processes run on that CMD leaves behind in its group\n"
    "                  (default: they get SIGTERM when it has ended)\n"
    "  --back TIME     give the task of a CMD that ends with status 75 back for so\n"
    "                  long, 1ms to 365d (default 1s). The attempt does not count\n"
    "  --lease TIME    a task that is taken is ours for so long, 1ms to 4294967295ms,\n"
    "                  49 days (default 30s). While its command runs, the lease is\n"
    "                  extended each third of this time. If this process dies,\n"
    "                  another worker gets the task when the lease is over. With\n"
    "                  --store: look three times in this time whether the task is\n"
    "                  still ours\n"
    "  --name NAME     the name that TW.GET shows, at most 255 bytes (default\n"
    "                  HOST:PID)\n"
    "  --grace TIME    at a signal to stop, wait at most so long for the commands\n"
    "                  that run, 0s to 1d (default: until they end)\n"
    "  --quiet         print no counts at the end, no status line, and errors only\n"
    "\n"
    "Options for a server. A password that the URL does not hold is taken from the\n"
    "environment: TICKWHEEL_WORK_PASSWORD or, if that is not set, REDISCLI_AUTH.\n"
    "\n";

static const char HELP_TAIL[] =
    "\n"
    "At SIGINT, SIGTERM or SIGHUP (but not under nohup) the worker takes no more\n"
    "tasks, and waits for the commands that run. At a second signal, or when --grace\n"
    "is over, it sends SIGTERM to them and, a second later or at a third signal,\n"
    "SIGKILL. Their tasks are given back: they are ready again at once, and the\n"
    "attempt does not count. A CMD that ends with status 0 or 75 then has said so.\n"
    "\n"
    "If the server cannot be reached, the worker tries again until it can. The\n"
    "results of commands that end meanwhile are reported then.\n"
    "\n"
    "Exit status:\n"
    "  0  a signal has stopped it;\n"
    "  1  it cannot go on: no permission, no module, a key that is no queue, or\n"
    "     the file cannot be used; or the result of a command could not be\n"
    "     reported;\n"
    "  2  arguments are wrong.\n";

enum { LEASE_DEFAULT_MS = 30000, BACK_DEFAULT_MS = 1000 };
static const char COMMAND[] = "tickwheel work";

/* An empty command would do each task by doing nothing. */
static bool take_exec(const struct option_row *row)
{
    const char **exec = row->to;
    *exec = optarg;
    return *optarg != '\0' || option_refuse(row, "a command");
}

static bool take_name(const struct option_row *row)
{
    size_t size = strlen(optarg);
    if (size > TW__TASK_WORKER_MAX)
        return option_refuse(row, "a name of at most 255 bytes");
    memcpy(row->to, optarg, size + 1);
    return true;
}

static void name_by_process(char name[WORK_NAME])
{
    char host[WORK_NAME - 16] = "";
    if (gethostname(host, sizeof host - 1) != 0 || *host == '\0')
        strcpy(host, "worker");
    snprintf(name, WORK_NAME, "%s:%ld", host, (long)getpid());
}

/* ---- checks ---------------------------------------------------------------------------------------------- */

static bool refuse_queue(const char *expected, const char *found)
{
    complain("%s: arguments: expected %s, found \"%s\"", COMMAND, expected, found);
    return false;
}

static bool check_queues(const struct work_options *options)
{
    if (options->queues == 0) {
        complain("%s: expected the queues to take tasks from (try: tickwheel work --help)", COMMAND);
        return false;
    }
    for (size_t i = 0; i < options->queues; i++)
        if (*options->queue[i] == '\0')
            return refuse_queue("queues", "");
    for (size_t i = 0; i < options->queues; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(options->queue[i], options->queue[j]) == 0)
                return refuse_queue("each queue once", options->queue[i]);
    return true;
}

static bool check_exec(const struct work_options *options)
{
    if (options->exec == NULL)
        complain("%s: expected --exec CMD, the command to run for each task (try: tickwheel work --help)",
                 COMMAND);
    return options->exec != NULL;
}

/* The commands do not get the worker's password. */
static bool check_source(struct work_options *options, const struct option_table *table)
{
    static const char PASSWORD[] = "TICKWHEEL_WORK_PASSWORD";
    bool good = options->store != NULL || link_options_end(&options->link, table, PASSWORD);
    unsetenv(PASSWORD);
    unsetenv(LINK_SENTINEL_PASSWORD);
    if (options->store == NULL)
        return good;
    if (!link_options_given(table))
        return true;
    complain("%s: --store takes from a file; --redis and the options of a server are for a server", COMMAND);
    return false;
}

int work_options_parse(int argc, char **argv, struct work_options *options)
{
    struct option_table table = {.command = COMMAND, .help = {HELP_HEAD, LINK_OPTIONS_HELP, HELP_TAIL}};
    struct tw__task_range lease = tw__task_range(TW__TASK_IN_LEASE);
    *options =
        (struct work_options){.jobs = JOBS_DEFAULT, .lease_ms = LEASE_DEFAULT_MS, .back_ms = BACK_DEFAULT_MS};
    name_by_process(options->name);
    link_options_add(&table, &options->link);
    options_other(&table, "--exec", take_exec, &options->exec);
    options_text(&table, "--store", &options->store);
    options_number(&table, "--jobs", &options->jobs, 1, JOBS_MAX);
    options_ms(&table, "--timeout", &options->timeout_ms, 1, JOB_TIMEOUT_MAX_MS);
    options_ms(&table, "--back", &options->back_ms, 1, JOB_TIMEOUT_MAX_MS);
    options_ms(&table, "--lease", &options->lease_ms, lease.least, lease.most);
    options_other(&table, "--name", take_name, options->name);
    options_ms(&table, "--grace", &options->grace_ms, 0, JOB_DAY_MS);
    options_flag(&table, "--leave", &options->leave);
    options_flag(&table, "--quiet", &options->quiet);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    options->has_grace = options_given(&table, "--grace");
    options->queue = argv + optind;
    options->queues = (size_t)(argc - optind);
    return check_exec(options) && check_queues(options) && check_source(options, &table) ? -1 : COMMAND_INPUT;
}
