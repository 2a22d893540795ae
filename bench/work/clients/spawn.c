/* SPDX-License-Identifier: MIT
 *
 * Runs a command by the shell, as `tickwheel work` runs it: posix_spawn(), a process group of its own, signals
 * with their usual effect. It does nothing else.
 *
 *     spawn COUNT JOBS COMMAND        runs it COUNT times, at most JOBS at once, and prints the microseconds
 *                                     that it took, and those of the processor
 */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static void fail(const char *words)
{
    fprintf(stderr, "spawn: %s\n", words);
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t processor_us(int whose)
{
    struct rusage spent;
    getrusage(whose, &spent);
    return (uint64_t)(spent.ru_utime.tv_sec + spent.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(spent.ru_utime.tv_usec + spent.ru_stime.tv_usec);
}

static void start(char *command)
{
    char *words[] = {"sh", "-c", command, NULL};
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t child;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&child, "/bin/sh", NULL, &attributes, words, environ) != 0)
        fail("the command does not start");
    posix_spawnattr_destroy(&attributes);
}

static void reap(void)
{
    int status;
    if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail("the command has failed");
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? atol(argv[1]) : 0, jobs = argc == 4 ? atol(argv[2]) : 0;
    if (count <= 0 || jobs <= 0) {
        fprintf(stderr, "usage: spawn COUNT JOBS COMMAND\n");
        return 2;
    }
    uint64_t begun = now_us();
    for (long started = 0, ended = 0; ended < count;) {
        if (started < count && started - ended < jobs) {
            start(argv[3]);
            started++;
        } else {
            reap();
            ended++;
        }
    }
    printf("%llu %llu\n", (unsigned long long)(now_us() - begun),
           (unsigned long long)(processor_us(RUSAGE_SELF) + processor_us(RUSAGE_CHILDREN)));
    return 0;
}
