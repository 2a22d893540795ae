/* SPDX-License-Identifier: MIT
 *
 * Idle-connection reaping with heartbeats. Each connection is closed 30 s after its last heartbeat. A
 * heartbeat only pushes the timer back, which is two stores to a cache line of the connection. The program
 * uses the wheel alone, in virtual time, without a network. echo-server.c does the same in a server.
 */
#include <stdio.h>
#include <tickwheel/wheel.h>

enum { CONNECTIONS = 5, IDLE_MS = 30000 };

struct connection {
    int number;
    struct tw_timer idle;
};

static struct tw_wheel *wheel;
static struct connection connections[CONNECTIONS];

static void heard_of(struct connection *connection)
{
    tw_wheel_move_in(wheel, &connection->idle, IDLE_MS);
}

static void reap(uint64_t now_ms)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, now_ms)) != NULL)
        printf("%3d s: connection %d has been silent for 30 s, closed\n", (int)(now_ms / 1000),
               TW_CONTAINER(timer, struct connection, idle)->number);
}

int main(void)
{
    if (tw_wheel_new(&wheel, NULL, 0) != 0)
        return 1;
    for (int i = 0; i < CONNECTIONS; i++) {
        connections[i].number = i;
        heard_of(&connections[i]);
    }
    for (uint64_t now_ms = 1; now_ms <= 120000; now_ms++) {
        reap(now_ms);
        for (int i = 1; i < CONNECTIONS; i++) /* connection i has a heartbeat each second, for 15 i seconds */
            if (now_ms % 1000 == 0 && now_ms <= (uint64_t)i * 15000)
                heard_of(&connections[i]);
    }
    printf("%d connections are left\n", (int)tw_wheel_count(wheel));
    tw_wheel_free(wheel);
    return 0;
}
