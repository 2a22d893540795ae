/* SPDX-License-Identifier: MIT
 *
 * A loop made of variables: the time to which its timer is set, and the present. Include it after cmocka.h.
 */
#ifndef TW_TESTS_LOOPS_FAKE_H
#define TW_TESTS_LOOPS_FAKE_H

#include <tickwheel/loop.h>

enum { FAKE_MS = 1000000 };

struct fake {
    uint64_t now_ns, at_ns;
    bool refuses;
    struct tw_wheel *wheel;
    struct tw_loop *loop;
};

static inline int fake_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    struct fake *fake = arg;
    (void)now_ns;
    if (fake->refuses)
        return TW_ESYSTEM;
    fake->at_ns = at_ns;
    return 0;
}

static inline void fake_close(void *arg)
{
    (void)arg;
}

static inline uint64_t fake_now(void *arg)
{
    const struct fake *fake = arg;
    return fake->now_ns;
}

static const struct tw_loop_driver fake_driver = {.arm = fake_arm, .close = fake_close, .now = fake_now};

/* A wheel at tick 100 in a loop at 5 s; `due` receives the fake. */
static inline void fake_open(struct fake *fake, tw_loop_due_fn *due, uint32_t budget)
{
    struct tw_loop_options options = {.due = due, .budget = budget, .arg = fake};
    *fake = (struct fake){.now_ns = UINT64_C(5000000000), .at_ns = UINT64_MAX, .wheel = wheel_of(NULL, 100)};
    assert_int_equal(tw_loop_new(&fake->loop, fake->wheel, &options, &fake_driver, fake), 0);
}

static inline void fake_end(struct fake *fake)
{
    tw_loop_free(fake->loop);
    tw_wheel_free(fake->wheel);
}

/* Runs a pass after some time. */
static inline void fake_turn(struct fake *fake, uint64_t ns)
{
    fake->now_ns += ns;
    tw_loop_turn(fake->loop);
}

#endif
