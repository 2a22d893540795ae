/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the addresses of servers (link/url.c). An address that is accepted is written again with each byte
 * encoded, and must give the same parts; an address that is refused changes nothing. No text for people holds a
 * byte that a terminal might obey, or a password: here the passwords are the word hunter2.
 */
#include "link/url.h"

#include "tests/support/fuzz.h"

#include <string.h>
#include <strings.h>

enum { TEXT_MAX = 8192, ROOM = 4 * ((URL_SENTINELS + 1) * URL_HOST + URL_USER + URL_PASSWORD) };

static void require_plain(const char *text)
{
    for (; *text != '\0'; text++)
        fuzz_require(*text >= ' ' && *text <= '~', "a text for people has a byte that is not printable");
}

/* Writes each byte as %XX. Returns the end. */
static char *encode(char *to, const char *from)
{
    for (; *from != '\0'; from++)
        to += sprintf(to, "%%%02X", (unsigned char)*from);
    return to;
}

static char *encode_user(char *to, const struct url *url)
{
    if (*url->user == '\0' && !url->has_password)
        return to;
    to = encode(to, url->user);
    if (url->has_password) {
        *to++ = ':';
        to = encode(to, url->password);
    }
    *to++ = '@';
    return to;
}

static char *encode_place(char *to, const char *host, int port)
{
    bool six = strchr(host, ':') != NULL;
    to += sprintf(to, six ? "[" : "");
    to = encode(to, host);
    return to + sprintf(to, "%s:%d", six ? "]" : "", port);
}

/* Writes the address in full. A path behind a user begins with a slash, by which the reader knows it. */
static void write_again(char *to, const struct url *url)
{
    bool user = *url->user != '\0' || url->has_password;
    if (url->transport == URL_UNIX) {
        to += sprintf(to, "unix:");
        to = encode_user(to, url);
        if (user)
            *to++ = '/';
        to = encode(to, url->host + user);
    } else {
        to +=
            sprintf(to, "redis%s%s://", url->tls ? "s" : "", url->transport == URL_SENTINEL ? "+sentinel" : "");
        to = encode_user(to, url);
        to = encode_place(to, url->host, url->port);
    }
    for (int i = 1; i < url->sentinels; i++) {
        *to++ = ',';
        to = encode_place(to, url->sentinel[i].host, url->sentinel[i].port);
    }
    if (url->transport == URL_SENTINEL) {
        *to++ = '/';
        to = encode(to, url->service);
    }
    if (url->has_db)
        sprintf(to, "?db=%d", url->db);
    else
        *to = '\0';
}

static void check_good(const struct url *url)
{
    static char text[ROOM], error[URL_ERROR];
    static struct url again;
    fuzz_require(*url->host != '\0', "an address has no host");
    fuzz_require((url->port == 0) == (url->transport == URL_UNIX) && url->port >= 0 && url->port <= 65535,
                 "a port is out of range");
    fuzz_require(url->db >= 0 && (url->has_db || url->db == 0), "a database is out of range");
    require_plain(url->text);
    write_again(text, url);
    fuzz_require(url_parse(text, &again, error), "the address is refused when it is written in full");
    fuzz_require(again.transport == url->transport && again.tls == url->tls && again.port == url->port &&
                     again.db == url->db && again.has_db == url->has_db &&
                     again.has_password == url->has_password &&
                     memcmp(again.sentinel, url->sentinel, sizeof again.sentinel) == 0,
                 "the address written in full has other numbers");
    fuzz_require(strcmp(again.host, url->host) == 0 && strcmp(again.user, url->user) == 0 &&
                     strcmp(again.password, url->password) == 0 && strcmp(again.service, url->service) == 0,
                 "the address written in full has other texts");
}

static const char *unchanged(const struct url *url)
{
    static struct url before;
    memset(&before, 0x5A, sizeof before);
    return memcmp(url, &before, sizeof before) == 0 ? NULL : "a refused address has changed the result";
}

/* Whether the text has the word hunter2 once, and in the place of a password. */
static bool has_password(const char *text)
{
    const char *found = strstr(text, ":hunter2@"), *word = strstr(text, "hunter2");
    bool unix_user = strncasecmp(text, "unix:hunter2@", 13) == 0;
    return found != NULL && !unix_user && word == found + 1 && strstr(word + 1, "hunter2") == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 1], error[URL_ERROR];
    static struct url url;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&url, 0x5A, sizeof url);
    memset(error, 0, sizeof error);
    if (url_parse(text, &url, error)) {
        fuzz_require(!has_password(text) || !url.has_password || strstr(url.text, "hunter2") == NULL,
                     "the text for people holds the password");
        check_good(&url);
        return 0;
    }
    const char *fault = unchanged(&url);
    fuzz_require(fault == NULL, fault);
    fuzz_require(strncmp(error, "expected ", 9) == 0, "a refusal does not say what was expected");
    require_plain(error);
    fuzz_require(!has_password(text) || strstr(error, "hunter2") == NULL, "an error holds the password");
    return 0;
}
