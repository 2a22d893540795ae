/* SPDX-License-Identifier: MIT
 *
 * beanstalkd with a log on the disk: -f0 syncs each put, -f50 at most every 50 ms, so that the last 50 ms are
 * lost with the machine. The client writes a batch of puts and then reads the answers. The server listens on a
 * free port of this machine, and ends with this program.
 */
#include "peer.h"
#include "tools.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = BATCH * (PAYLOAD + 64), TRIES = 200, TRY_US = 10000 };

struct server {
    pid_t pid;
    int socket;
    size_t puts; /* so far */
    char *room;
};

static struct sockaddr_in here(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Returns a port that was free a moment ago. */
static uint16_t find_port(void)
{
    struct sockaddr_in address = here(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        fail("beanstalkd: no free port");
    close(fd);
    return ntohs(address.sin_port);
}

/* The client keeps its core, if it is pinned, and the server gets the others. */
static void leave_the_client_its_core(void)
{
    cpu_set_t mine, others;
    CPU_ZERO(&others);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    for (int i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
        if (!CPU_ISSET(i, &mine))
            CPU_SET(i, &others);
    if (CPU_COUNT(&others) > 0)
        sched_setaffinity(0, sizeof others, &others);
}

static pid_t start_server(const char *folder, const char *sync, uint16_t port)
{
    pid_t parent = getpid(), pid = fork();
    char word[8];
    if (pid < 0)
        fail("beanstalkd: no process");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    leave_the_client_its_core();
    snprintf(word, sizeof word, "%u", port);
    execlp("beanstalkd", "beanstalkd", "-l", "127.0.0.1", "-p", word, "-b", folder, sync, (char *)NULL);
    _exit(127);
}

/* Connects as soon as the server listens. Returns: the socket, or -1. */
static int connect_when_ready(pid_t pid, uint16_t port)
{
    struct sockaddr_in address = here(port);
    for (int i = 0; i < TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return fd;
        }
        close(fd);
        usleep(TRY_US);
        if (waitpid(pid, NULL, WNOHANG) == pid)
            break;
    }
    return -1;
}

static void *start(const char *folder, const char *sync)
{
    struct server *server = need(1, sizeof *server);
    uint16_t port = find_port();
    if (mkdir(folder, 0700) != 0)
        fail("%s: the folder cannot be made", folder);
    server->room = need(1, ROOM);
    server->pid = start_server(folder, sync, port);
    server->socket = connect_when_ready(server->pid, port);
    if (server->socket < 0)
        fail("beanstalkd does not start on port %u (tools/setup bench installs it)", port);
    return server;
}

static void *open_f0(const char *path)
{
    return start(path, "-f0");
}

static void *open_f50(const char *path)
{
    return start(path, "-f50");
}

static void stop(void *self)
{
    struct server *server = self;
    close(server->socket);
    kill(server->pid, SIGTERM);
    waitpid(server->pid, NULL, 0);
    free(server->room);
    free(server);
}

static void send_all(struct server *server, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = write(server->socket, bytes, size);
        if (sent <= 0)
            fail("beanstalkd has closed the connection");
        bytes += sent;
        size -= (size_t)sent;
    }
}

/* Reads the answers of n puts: lines "INSERTED n", with the numbers in their order. */
static void read_answers(struct server *server, size_t n)
{
    size_t have = 0;
    while (n > 0) {
        ssize_t got = read(server->socket, server->room + have, ROOM - have - 1);
        if (got <= 0)
            fail("beanstalkd has closed the connection");
        have += (size_t)got;
        server->room[have] = '\0';
        char *line = server->room, *end;
        for (; (end = strstr(line, "\r\n")) != NULL; line = end + 2, n--)
            if (strncmp(line, "INSERTED ", 9) != 0 || strtoul(line + 9, NULL, 10) != ++server->puts)
                fail("beanstalkd answers '%.40s': expected INSERTED", line);
        have -= (size_t)(line - server->room);
        memmove(server->room, line, have);
    }
}

/* beanstalkd's delays are seconds from now. */
static void put_all(void *self, const struct row *rows, size_t n)
{
    struct server *server = self;
    uint64_t now_ms = wall_us() / 1000;
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        size += (size_t)snprintf(server->room + size, ROOM - size, "put 0 %llu 60 %d\r\n",
                                 (unsigned long long)(rows[i].due_ms - now_ms) / 1000, PAYLOAD);
        memcpy(server->room + size, payload, PAYLOAD);
        memcpy(server->room + size + PAYLOAD, "\r\n", 2);
        size += PAYLOAD + 2;
    }
    send_all(server, server->room, size);
    read_answers(server, n);
}

const struct peer beanstalkd_f0_peer = {"beanstalkd_f0", open_f0, stop, put_all, NULL, NULL};
const struct peer beanstalkd_f50_peer = {"beanstalkd_f50", open_f50, stop, put_all, NULL, NULL};
