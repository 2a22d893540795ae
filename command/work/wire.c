/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MIN_MS = 100, LOOK_MS = 250 };

/* ---- waits ----------------------------------------------------------------------------------------------- */

/* Many workers that lose one server do not come back all at the same moment. */
uint64_t wire_backoff_ms(uint64_t *wait_ms, uint64_t max_ms)
{
    uint64_t wait = *wait_ms > 0 ? *wait_ms : max_ms < WAIT_MIN_MS ? max_ms : WAIT_MIN_MS;
    *wait_ms = wait * 2 < max_ms ? wait * 2 : max_ms;
    return wait - wait / 4 + (uint64_t)random() % (wait / 2 + 1);
}

static void let_go(struct wire *wire)
{
    link_close(wire->link);
    wire->link = NULL;
    wire->open = false;
    timers_cancel(wire->timers, &wire->patience);
    timers_cancel(wire->timers, &wire->look);
    timers_cancel(wire->timers, &wire->again);
}

void wire_break(struct wire *wire, const char *why)
{
    let_go(wire);
    if (wire->closed)
        return;
    timers_set(wire->timers, &wire->again, wire_backoff_ms(&wire->wait_ms, wire->wait_max_ms));
    wire->events.broken(wire->events.arg, why);
}

void wire_praise(struct wire *wire)
{
    wire->wait_ms = 0;
}

static void run_out_of_patience(void *arg)
{
    struct wire *wire = arg;
    char why[LINK_ERROR];
    bool tls = !wire->open && wire->target->url.tls;
    snprintf(why, sizeof why, "%s for %d s%s", wire->open ? "there was no answer" : "cannot connect: no answer",
             WIRE_PATIENCE_MS / 1000, tls ? " (has this port TLS?)" : "");
    wire_break(wire, why);
}

/* While a link connects, it is asked from time to time, as it may go on to another address of the host. */
static void look(void *arg)
{
    struct wire *wire = arg;
    if (!wire->open)
        timers_set(wire->timers, &wire->look, LOOK_MS);
}

static void begin(void *arg)
{
    struct wire *wire = arg;
    char why[LINK_ERROR];
    wire->asks = wire->target->asking;
    wire->link = link_begin(wire->target, why);
    if (wire->link == NULL) {
        wire_break(wire, why);
        return;
    }
    timers_set(wire->timers, &wire->patience, WIRE_PATIENCE_MS);
    look(wire);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

void wire_send(struct wire *wire, int count, const char **words, const size_t *sizes)
{
    if (wire->target->asking)
        link_send(wire->link, 1, (const char *[]){"ASKING"}, NULL);
    link_send(wire->link, count, words, sizes);
}

void wire_expect(struct wire *wire, uint64_t ms)
{
    if (ms > 0)
        timers_set(wire->timers, &wire->patience, ms);
    else
        timers_cancel(wire->timers, &wire->patience);
}

size_t wire_watch(const struct wire *wire, struct pollfd *fds)
{
    if (wire->link == NULL)
        return 0;
    *fds = (struct pollfd){.fd = link_fd(wire->link), .events = link_events(wire->link)};
    return 1;
}

static void note_open(struct wire *wire)
{
    wire->open = true;
    timers_cancel(wire->timers, &wire->patience);
    timers_cancel(wire->timers, &wire->look);
    if (wire->events.opened != NULL)
        wire->events.opened(wire->events.arg);
}

static void fail(struct wire *wire, const char *why)
{
    if (!link_was_refused(wire->link)) {
        wire_break(wire, why);
        return;
    }
    wire_close(wire);
    wire->events.refused(wire->events.arg, why);
}

static void take_reply(struct wire *wire, redisReply *reply)
{
    bool of_asking = wire->asks;
    wire->asks = wire->target->asking && !of_asking;
    if (!of_asking)
        wire->events.reply(wire->events.arg, reply);
    else if (reply->type == REDIS_REPLY_ERROR)
        wire_break(wire, reply->str);
}

/* An event may end the link, so it is looked at anew after each of them. */
void wire_turn(struct wire *wire)
{
    char why[LINK_ERROR];
    redisReply *reply;
    for (int found = 1; found > 0 && wire->link != NULL;) {
        found = link_pump(wire->link, &reply, why);
        if (found < 0)
            fail(wire, why);
        else if (!wire->open && link_is_open(wire->link)) {
            note_open(wire);
            found = 1; /* the events have filed commands: sends them */
        }
        if (reply != NULL) {
            take_reply(wire, reply);
            freeReplyObject(reply);
        }
    }
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

void wire_init(struct wire *wire, const struct link_target *target, struct timers *timers,
               const struct wire_events *events)
{
    *wire = (struct wire){.target = target,
                          .timers = timers,
                          .events = *events,
                          .wait_max_ms = WIRE_WAIT_MAX_MS,
                          .again = {.fire = begin, .arg = wire},
                          .patience = {.fire = run_out_of_patience, .arg = wire},
                          .look = {.fire = look, .arg = wire}};
    timers_set(timers, &wire->again, 0);
}

void wire_close(struct wire *wire)
{
    wire->closed = true;
    let_go(wire);
}
