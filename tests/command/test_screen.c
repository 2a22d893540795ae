/* SPDX-License-Identifier: MIT
 *
 * An output for which poll() says that there is room, and which takes nothing: a terminal that has room for
 * half a newline is one. Its writes and the clock are the test's.
 */
#include "screen.h"

#include "tests/support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000000, QUITS_AT = 50 };

static struct {
    bool takes_nothing;
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

/* Each write to the output waits for a moment in vain. In one of them a signal comes to end the process. */
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (!output.takes_nothing || fd != STDOUT_FILENO)
        return __real_write(fd, bytes, size);
    output.now_ms += 20;
    if (++output.writes == QUITS_AT) {
        output.quit_ms = output.now_ms;
        screen_quit();
    }
    errno = EINTR;
    return -1;
}

static void an_output_that_takes_nothing_holds_no_stop(void **state)
{
    (void)state;
    int before = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(before >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
    output.takes_nothing = true;
    bool printed = screen_print(tw_text("a line\n"));
    output.takes_nothing = false;
    dup2(before, STDOUT_FILENO);
    close(before);
    close(null);
    assert_false(printed);
    assert_string_equal(screen_reason(screen_error()), "nobody reads it");
    assert_int_equal(output.now_ms - output.quit_ms, 1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(an_output_that_takes_nothing_holds_no_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
