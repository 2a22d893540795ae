/* SPDX-License-Identifier: MIT
 *
 * An output for which poll() says that there is room, and which takes nothing, or a byte in a moment: a
 * terminal that has room for half a newline, or a slow one. Its writes and the clock are the test's.
 */
#include "screen.h"

#include "tests/support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000000, QUITS_AT = 50 };

static struct {
    bool is_slow;
    ssize_t takes; /* bytes in a moment */
    uint64_t writes, now_ms, quit_ms;
} output;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){(time_t)(output.now_ms / 1000), (long)(output.now_ms % 1000 * MS_NS)};
    return 0;
}

/* Each write to the output waits for a moment. In one of them a signal comes to end the process. */
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (!output.is_slow || fd != STDOUT_FILENO)
        return __real_write(fd, bytes, size);
    output.now_ms += 20;
    if (++output.writes == QUITS_AT) {
        output.quit_ms = output.now_ms;
        screen_quit();
    }
    errno = EINTR;
    return output.takes > 0 ? output.takes : -1;
}

static int begin_slow(ssize_t takes)
{
    int before = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(before >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
    close(null);
    output.is_slow = true;
    output.takes = takes;
    output.writes = 0;
    return before;
}

static void end_slow(int before)
{
    output.is_slow = false;
    dup2(before, STDOUT_FILENO);
    close(before);
}

/* Passes on the outputs of many commands in one round. Returns how many writes that took. */
static uint64_t pass_many(size_t gone[2])
{
    uint64_t writes = output.writes;
    screen_next_round();
    gone[0] = screen_pass(STDOUT_FILENO, tw_text("a line\n"));
    for (int i = 0; i < 30; i++)
        gone[1] = screen_pass(STDOUT_FILENO, tw_text("another\n"));
    return output.writes - writes;
}

/* A bug: each command waited for a moment, and the worker sent no heartbeats meanwhile. */
static void many_commands_wait_together_for_a_slow_output(void **state)
{
    size_t gone[2];
    (void)state;
    int before = begin_slow(1);
    uint64_t writes = pass_many(gone);
    bool has_room = screen_has_room(STDOUT_FILENO);
    writes += pass_many(gone);
    end_slow(before);
    assert_int_equal(writes, 2); /* one a round */
    assert_false(has_room);
    assert_int_equal(gone[0], 1);
    assert_int_equal(gone[1], 0);
    screen_next_round();
    assert_true(screen_has_room(STDOUT_FILENO));
}

/* After the signal of the test before. A bug: the outputs of many commands held a stop for as many moments. */
static void many_commands_hold_no_stop(void **state)
{
    size_t gone[2];
    (void)state;
    int before = begin_slow(0);
    uint64_t writes = pass_many(gone);
    end_slow(before);
    assert_int_equal(writes, 1);
    assert_int_equal(gone[0], 7); /* they are lost */
    assert_int_equal(gone[1], 8);
}

static void an_output_that_takes_nothing_holds_no_stop(void **state)
{
    (void)state;
    int before = begin_slow(0);
    bool printed = screen_print(tw_text("a line\n"));
    end_slow(before);
    assert_false(printed);
    assert_string_equal(screen_reason(screen_error()), "nobody reads it");
    assert_int_equal(output.now_ms - output.quit_ms, 1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_commands_wait_together_for_a_slow_output),
        cmocka_unit_test(an_output_that_takes_nothing_holds_no_stop),
        cmocka_unit_test(many_commands_hold_no_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
