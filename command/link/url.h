/* SPDX-License-Identifier: MIT
 *
 * The address of a Redis or Valkey server, as a user writes it:
 *
 *   redis://[USER[:PASSWORD]@][HOST][:PORT][/DB]    port 6379 by default
 *   rediss://...                                    the same, with TLS
 *   redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]/NAME[/DB]
 *                    the primary of the service NAME, as its sentinels name it, port 26379 by default. The
 *                    user is that of the primary
 *   rediss+sentinel://...   the same, with TLS to the primary and to its sentinels
 *   unix:[//][USER[:PASSWORD]@]PATH[?db=DB]         a Unix socket; after //, PATH begins with a slash
 *   HOST[:PORT], :PORT or [IPV6][:PORT]             port 7379 by default, as `make serve` has it
 *
 * In a URL %XX is a byte, so a password may hold any byte but 0; an IPv6 address stands in brackets. Without a
 * host it is 127.0.0.1. ?db=DB also stands for /DB.
 */
#ifndef COMMAND_URL_H
#define COMMAND_URL_H

#include <stdbool.h>

enum { URL_HOST = 256, URL_USER = 256, URL_PASSWORD = 4097, URL_TEXT = 640, URL_ERROR = 1024 };
enum { URL_SENTINELS = 8 };

enum url_transport { URL_TCP, URL_UNIX, URL_SENTINEL };

struct url_place {
    char host[URL_HOST];
    int port;
};

struct url {
    enum url_transport transport;
    bool tls;            /* over TCP; the sentinels have it too */
    char host[URL_HOST]; /* a name, an address without brackets, or the path of a Unix socket */
    int port;            /* 0: a Unix socket */
    char user[URL_USER]; /* empty: the default user */
    char password[URL_PASSWORD];
    bool has_password; /* it may be empty */
    bool has_db;       /* the text names a database */
    int db;
    struct url_place
        sentinel[URL_SENTINELS]; /* of URL_SENTINEL, as the next two; host and port are the first */
    int sentinels;
    char service[URL_HOST];
    char text[URL_TEXT]; /* for people: as the user wrote it, but *** for the password and ? for a byte that a
                          * terminal might obey */
};

/* Reads an address. If it is not valid, returns false and writes the reason to `error`: `expected ..., found
 * "..."`. The reason holds no password, and `url` is then unchanged. */
bool url_parse(const char *text, struct url *url, char error[URL_ERROR]);

#endif
