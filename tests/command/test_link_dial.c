/* SPDX-License-Identifier: MIT
 *
 * A host with several addresses. getaddrinfo() is wrapped, so the addresses are ports of this machine: ports
 * that refuse a connection, ports that are silent, and one that takes it. The clock stands still until a test
 * moves it.
 */
#include "link/dial.h"

#include "tests/support/cmocka.h"
#include "tests/support/eventually.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESSES = 4 };

static struct {
    struct sockaddr_in address[ADDRESSES];
    struct addrinfo info[ADDRESSES];
    size_t count;
} host;

static uint64_t now_ms = 1000;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_getaddrinfo(const char *name, const char *port, const struct addrinfo *hints,
                       struct addrinfo **found);
void __wrap_freeaddrinfo(struct addrinfo *found);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    *now = (struct timespec){(time_t)(now_ms / 1000), (long)(now_ms % 1000) * 1000000};
    return 0;
}

int __wrap_getaddrinfo(const char *name, const char *port, const struct addrinfo *hints,
                       struct addrinfo **found)
{
    assert_string_equal(name, "a.host");
    assert_string_equal(port, "7");
    assert_int_equal(hints->ai_socktype, SOCK_STREAM);
    for (size_t i = 0; i < host.count; i++)
        host.info[i] = (struct addrinfo){.ai_family = AF_INET,
                                         .ai_addr = (struct sockaddr *)&host.address[i],
                                         .ai_addrlen = sizeof host.address[i],
                                         .ai_next = i + 1 < host.count ? &host.info[i + 1] : NULL};
    *found = host.info;
    return host.count > 0 ? 0 : EAI_NONAME;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
    assert_ptr_equal(found, host.info);
}

/* Binds a port of 127.0.0.1 and adds it to the host's addresses. Returns its socket. */
static int add_port(void)
{
    struct sockaddr_in *address = &host.address[host.count++];
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
    return fd;
}

static int add_listener(int backlog)
{
    int fd = add_port();
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

/* A port whose queue is full says nothing to further connections. Those in the queue go to `queued`. */
static int add_silent(int queued[ADDRESSES])
{
    int fd = add_listener(0);
    const struct sockaddr_in *address = &host.address[host.count - 1];
    for (int i = 0; i < ADDRESSES; i++) {
        queued[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(queued[i], (const struct sockaddr *)address, sizeof *address) != 0)
            assert_int_equal(errno, EINPROGRESS);
    }
    return fd;
}

static const struct url a_url = {.host = "a.host", .port = 7};

/* Waits for a result: without one, dial_step() returns 0. */
static int result(struct dial *dial, char error[LINK_ERROR])
{
    int found = 0;
    EVENTUALLY((found = dial_step(dial, error)) != 0);
    return found;
}

static int dial(struct dial *dial, char error[LINK_ERROR])
{
    return dial_begin(dial, &a_url, error) ? result(dial, error) : -1;
}

/* Returns the port that a connection goes to, in the net's order. */
static in_port_t port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getpeername(fd, (struct sockaddr *)&address, &size), 0);
    return address.sin_port;
}

static int reset(void **state)
{
    (void)state;
    host.count = 0;
    return 0;
}

static void the_first_address_that_answers_is_taken(void **state)
{
    char error[LINK_ERROR];
    struct dial found;
    int first = add_port(), second = add_port(), third = add_listener(5), last = add_listener(5);
    (void)state;
    assert_int_equal(dial(&found, error), 1);
    assert_int_equal(port_of(found.fd), host.address[2].sin_port);
    dial_end(&found);
    assert_int_equal(found.fd, -1);
    close(first), close(second), close(third), close(last);
}

static void a_silent_address_is_left_for_the_next_one(void **state)
{
    char error[LINK_ERROR];
    struct dial found;
    int queued[ADDRESSES], silent = add_silent(queued), good = add_listener(5);
    (void)state;
    assert_true(dial_begin(&found, &a_url, error));
    now_ms += 999;
    assert_int_equal(dial_step(&found, error), 0);
    assert_ptr_equal(found.next, &host.info[1]);
    now_ms += 1;
    assert_int_equal(result(&found, error), 1);
    assert_int_equal(port_of(found.fd), host.address[1].sin_port);
    dial_end(&found);
    for (int i = 0; i < ADDRESSES; i++)
        close(queued[i]);
    close(silent), close(good);
}

static void the_last_address_is_not_left(void **state)
{
    char error[LINK_ERROR];
    struct dial found;
    int queued[ADDRESSES], refusing = add_port(), silent = add_silent(queued);
    (void)state;
    assert_true(dial_begin(&found, &a_url, error));
    EVENTUALLY(dial_step(&found, error) == 0 && found.next == NULL);
    now_ms += 3600000;
    assert_int_equal(dial_step(&found, error), 0);
    dial_end(&found);
    for (int i = 0; i < ADDRESSES; i++)
        close(queued[i]);
    close(refusing), close(silent);
}

static void the_error_is_that_of_the_last_address(void **state)
{
    char error[LINK_ERROR];
    struct dial found;
    int first = add_port(), second = add_port();
    (void)state;
    assert_int_equal(dial(&found, error), -1);
    assert_string_equal(error, "cannot connect: Connection refused");
    dial_end(&found);
    close(first), close(second);
    host.count = 0;
    assert_int_equal(dial(&found, error), -1);
    assert_string_equal(error, "cannot connect: Name or service not known");
    dial_end(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_address_that_answers_is_taken, reset),
        cmocka_unit_test_setup(a_silent_address_is_left_for_the_next_one, reset),
        cmocka_unit_test_setup(the_last_address_is_not_left, reset),
        cmocka_unit_test_setup(the_error_is_that_of_the_last_address, reset),
    };
    return cmocka_run_group_tests_name("link_dial", tests, NULL, NULL);
}
