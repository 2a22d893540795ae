/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller that end the program. Each mistake is made in a child process, and the test reads
 * the child's standard error. The rooms that such a test links are compiled with TW_DEBUG 2 (audited_room()
 * in tests/CMakeLists.txt). Include it after cmocka.h for assert_dies().
 */
#ifndef TW_TESTS_DIES_H
#define TW_TESTS_DIES_H

#include "tests/support/eventually.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* A child process that is to make a mistake, and the file that has its standard error. */
struct dying {
    pid_t child;
    FILE *words;
};

/* Forks the child, which leaves no core file. Returns true in the child. */
static inline bool dying_fork(struct dying *dying)
{
    static const struct rlimit no_core = {0, 0};
    dying->words = tmpfile();
    if (dying->words == NULL)
        abort();
    fflush(NULL);
    dying->child = fork();
    if (dying->child == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a child that does not end, as it should, ends with the test */
        signal(SIGABRT, SIG_DFL);
        dup2(fileno(dying->words), STDERR_FILENO);
    }
    return dying->child == 0;
}

#ifdef TESTS_COVERAGE
void __gcov_dump(void);
#endif

/* Ends a child that is to go on to its end, with what it has run noted for gcov, which _exit() leaves out. */
static inline void dying_exit(int status)
{
#ifdef TESTS_COVERAGE
    __gcov_dump();
#endif
    _exit(status);
}

/* Waits for the end of a child. Returns its status, as waitpid() has it. */
static inline int dying_status(const struct dying *dying)
{
    fclose(dying->words);
    return eventually_exited(dying->child);
}

/* Waits for the child. Returns whether it was ended by an assertion whose text contains `assertion`; if not,
 * prints how the child ended. */
static inline bool dying_of(const struct dying *dying, const char *assertion)
{
    char said[2000];
    int status = dying->child < 0 ? 0 : eventually_exited(dying->child);
    rewind(dying->words);
    said[fread(said, 1, sizeof said - 1, dying->words)] = '\0';
    fclose(dying->words);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, assertion) != NULL)
        return true;
    fprintf(stderr, "expected the assertion '%s'; the child ended with wait status %#x and said: %s\n",
            assertion, (unsigned)status, said);
    return false;
}

/* Asserts that the statement `mistake` fails an assertion. `assertion` is a part of that assertion's
 * condition after macros are expanded, so it cannot contain NULL. */
#define assert_dies(mistake, assertion)                                                                        \
    do {                                                                                                       \
        struct dying dying_;                                                                                   \
        if (dying_fork(&dying_)) {                                                                             \
            mistake;                                                                                           \
            _exit(0);                                                                                          \
        }                                                                                                      \
        assert_true(dying_of(&dying_, assertion));                                                             \
    } while (0)

#endif
