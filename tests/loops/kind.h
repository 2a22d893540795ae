/* SPDX-License-Identifier: MIT
 *
 * One loop, for the test of all loops: the calls that make, run and watch the loop that the test is linked
 * with.
 */
#ifndef TW_TESTS_LOOPS_KIND_H
#define TW_TESTS_LOOPS_KIND_H

#include <stdbool.h>
#include <tickwheel/loop.h>

struct kind {
    const char *name;
    bool ends;  /* the loop ends by itself when nothing is pending */
    bool nests; /* a due callback may run it */
    void *(*open)(void);
    void (*close)(void *base);
    int (*attach)(struct tw_loop **loop, void *base, struct tw_wheel *wheel,
                  const struct tw_loop_options *options);
    int (*executor)(struct tw_executor **executor, void *base, uint32_t budget);
    /* Tells the kind which loop and executor own the events, for loops whose programs look at events. */
    void (*owner)(struct tw_loop *loop, struct tw_executor *executor);
    /* Calls `readable` in each iteration in which the descriptor is readable. One descriptor at a time. */
    void (*watch)(void *base, int fd, void (*readable)(void));
    void (*unwatch)(void *base);
    void (*run)(void *base);
    void (*stop)(void *base);
    /* Whether the loop holds nothing, so that it may be closed at once. NULL: the loop cannot tell. */
    bool (*empty)(void *base);
    /* Lets a timer of the loop's own call `called` every millisecond, until `called` returns false. NULL: not
     * tried. */
    void (*often)(void *base, bool (*called)(void));
    /* In a child of fork(): makes the loop the child's own, as its library asks. Returns the loop to go on
     * with: another one, if the library has no way. */
    void *(*forked)(void *base);
};

extern const struct kind kind;

/* The n-th call from now on that may fail does fail; 0: no call fails. */
extern unsigned fail_at;
bool failing(void);

#endif
