/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller that end the program: each is made in a child, whose last words are read. The rooms that such a
 * test links are compiled with TW_DEBUG 2 (audited_room() in tests/CMakeLists.txt).
 */
#ifndef TW_TESTS_DIES_H
#define TW_TESTS_DIES_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: makes the mistake, with standard error going to the parent, and leaves no core file. */
static inline void dies_child(void (*mistake)(void *arg), void *arg, int to_parent)
{
    static const struct rlimit no_core;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGABRT, SIG_DFL);
    dup2(to_parent, STDERR_FILENO);
    mistake(arg);
    _exit(0);
}

/* Makes a mistake in a child process. `assertion` is a part of the condition that is asserted there, as the compiler has
 * it after macros (no NULL).
 * Returns: whether that assertion ended the child; if not, says how the child ended. */
static inline bool dies(void (*mistake)(void *arg), void *arg, const char *assertion)
{
    char words[2000] = "";
    size_t length = 0;
    int ends[2], status;
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        dies_child(mistake, arg, ends[1]);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], words + length, sizeof words - 1 - length)) > 0; length += (size_t)n)
        ;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    words[length] = '\0';
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(words, assertion) != NULL)
        return true;
    fprintf(stderr, "expected the assertion '%s'; the child ended with wait status %#x and said: %s\n",
            assertion, (unsigned)status, words);
    return false;
}

#endif
