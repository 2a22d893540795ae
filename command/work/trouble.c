/* SPDX-License-Identifier: MIT */
#include "trouble.h"

#include "command.h"
#include "link/link.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

enum { PORT_MAX = 65535 };

/* A full memory, a full disk and a lack of replicas last for a while; UNBLOCKED, READONLY and a lost primary
 * mean a failover. */
enum trouble trouble_of(const char *reply)
{
    static const struct {
        const char *begin;
        enum trouble trouble;
    } KNOWN[] = {{"LOADING", TROUBLE_PASSES},      {"BUSY", TROUBLE_PASSES},
                 {"TRYAGAIN", TROUBLE_PASSES},     {"OOM", TROUBLE_PASSES},
                 {"MISCONF", TROUBLE_PASSES},      {"NOREPLICAS", TROUBLE_PASSES},
                 {"CLUSTERDOWN", TROUBLE_PASSES},  {"ERR max number of clients", TROUBLE_ELSEWHERE},
                 {"READONLY", TROUBLE_ELSEWHERE},  {"MASTERDOWN", TROUBLE_ELSEWHERE},
                 {"UNBLOCKED", TROUBLE_ELSEWHERE}, {"ASK", TROUBLE_MOVED},
                 {"MOVED", TROUBLE_MOVED}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (text_begins(reply, KNOWN[i].begin))
            return KNOWN[i].trouble;
    return TROUBLE_STAYS;
}

/* Whether a terminal shows each byte of the name of a host, as it stands in messages. */
static bool is_shown(const char *host, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (host[i] <= ' ' || host[i] > '~')
            return false;
    return true;
}

bool trouble_is_ask(const char *reply)
{
    return text_begins(reply, "ASK");
}

/* MOVED slot host:port, or ASK slot host:port; without a host it is the one that we asked. */
bool trouble_follow(const char *reply, struct link_target *target)
{
    const char *node = strrchr(reply, ' '), *colon = strrchr(reply, ':');
    uint64_t port;
    if (node == NULL || colon == NULL || colon < node || target->url.transport == URL_UNIX ||
        target->url.transport == URL_SENTINEL || !number_parse(colon + 1, PORT_MAX, &port) || port == 0)
        return false;
    int size = (int)(colon - ++node);
    if (size >= URL_HOST || !is_shown(node, (size_t)size))
        return false;
    if (size > 0)
        snprintf(target->url.host, sizeof target->url.host, "%.*s", size, node);
    target->url.port = (int)port;
    target->asking = trouble_is_ask(reply);
    snprintf(target->url.text, sizeof target->url.text, "%s:%d", target->url.host, target->url.port);
    return true;
}

void trouble_explain(const struct link_target *target, const char *command, const char *reply,
                     char error[LINK_ERROR])
{
    if (text_begins(reply, "CROSSSLOT"))
        snprintf(error, LINK_ERROR,
                 "the queues lie in several slots of a cluster: start a worker for each hash tag, or give the "
                 "queues the same one, as in {shop}:orders and {shop}:mails");
    else if (text_begins(reply, "WRONGTYPE"))
        snprintf(error, LINK_ERROR, "%s: a key of this name is no queue: %.200s", command, reply);
    else
        link_explain(target, command, reply, error);
}
