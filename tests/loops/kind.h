/* SPDX-License-Identifier: MIT
 *
 * What the test of all loops has to know of the one that it is linked with.
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
    int (*executor)(struct tw_executor **executor, void *base, uint32_t budget,
                    struct tw_sched_options *options);
    /* Tells the kind whose events these are now, for the loops whose programs look at them. */
    void (*owner)(struct tw_loop *loop, struct tw_executor *executor);
    /* Has `readable` called in each turn in which the descriptor is; one at a time. */
    void (*watch)(void *base, int fd, void (*readable)(void));
    void (*unwatch)(void *base);
    void (*run)(void *base);
    void (*stop)(void *base);
    /* Whether nothing is in it, so that it may be closed at once. NULL: it does not tell. */
    bool (*empty)(void *base);
    /* Has a timer of the loop's own call `called` every millisecond, until that returns false. NULL: not
     * tried. */
    void (*often)(void *base, bool (*called)(void));
};

extern const struct kind kind;

/* The n-th call from now on that may fail does; 0: none. */
extern unsigned fail_at;
bool failing(void);

#endif
