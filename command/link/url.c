/* SPDX-License-Identifier: MIT */
#include "url.h"

#include "command.h"
#include "text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

enum { PORT_MAX = 65535, PORT_OF_A_URL = 6379, PORT_OF_AN_ADDRESS = 7379, PORT_OF_A_SENTINEL = 26379 };
enum { PATH_MAX_BYTES = sizeof((struct sockaddr_un *)NULL)->sun_path - 1, DECIMALS = 24 };

static const char ADDRESS[] = "HOST:PORT, with a port from 1 to 65535, redis://HOST:PORT, rediss://HOST:PORT, "
                              "redis+sentinel://HOST:PORT/NAME or unix:PATH";
static const char SERVICE[] = "redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB, with ports from 1 to 65535";
static const char ENCODING[] = "two hexadecimal digits behind each %, and no %00";
static const char SIZES[] =
    "HOST:PORT with a host of at most 255 bytes, a user of as many, and a password of at "
    "most 4096";

/* One attempt to read an address. */
struct attempt {
    const char *text;
    bool encoded; /* %XX stands for a byte */
    struct url *url;
    char *error;
};

/* ---- texts for people ------------------------------------------------------------------------------------ */

/* Returns the bytes of the scheme at the start of a text, with its colon and slashes; 0: there is none. */
static size_t scheme_of(const char *text)
{
    size_t size = 0;
    if (strncasecmp(text, "unix:", 5) == 0)
        return 5;
    while (isalnum((unsigned char)text[size]) || (size > 0 && strchr("+-.", text[size]) && text[size] != '\0'))
        size++;
    return strncmp(text + size, "://", 3) == 0 ? size + 3 : 0;
}

/* Returns whether the text behind the colon of a URL without @ is no port: the user may have forgotten the
 * host. */
static bool may_be_a_password(const char *text, const char *start, const char *colon)
{
    if (start == text || strncasecmp(text, "unix:", 5) == 0 || *start == '[' || colon == NULL ||
        colon > start + strcspn(start, "/?#"))
        return false;
    return strchr("/?#", colon[1 + strspn(colon + 1, "0123456789")]) == NULL;
}

/* Finds the bytes that are a password, or would be one if the text were right. */
static void find_secret(const char *text, const char **from, const char **end)
{
    const char *start = text + scheme_of(text), *at = strrchr(start, '@'), *colon = strchr(start, ':');
    const char *parameter = strstr(start, "password=");
    *from = *end = NULL;
    if (at != NULL && colon != NULL && colon < at) {
        *from = colon + 1;
        *end = at;
    } else if (at == NULL && may_be_a_password(text, start, colon)) {
        *from = colon + 1;
        *end = start + strlen(start);
    }
    if (parameter != NULL) {
        *from = *from != NULL && *from < parameter ? *from : parameter + strlen("password=");
        *end = text + strlen(text);
    }
}

/* Copies a text, but *** in place of its password, and ? in place of a byte that is not printable ASCII. */
static void show(const char *text, bool hide, char shown[URL_TEXT])
{
    const char *from = NULL, *end = NULL;
    size_t size = 0;
    if (hide)
        find_secret(text, &from, &end);
    while (size + strlen("***") < URL_TEXT && (*text != '\0' || text == from)) {
        if (text == from) {
            size += (size_t)sprintf(shown + size, "***");
            text = end;
            from = NULL;
        } else {
            shown[size++] = *text >= ' ' && *text <= '~' ? *text : '?';
            text++;
        }
    }
    shown[size] = '\0';
}

static bool refuse(const struct attempt *attempt, const char *expected)
{
    char shown[URL_TEXT];
    show(attempt->text, true, shown);
    snprintf(attempt->error, URL_ERROR, "expected %s, found \"%s\"", expected, shown);
    return false;
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

/* Decodes the bytes from `from` to `end`, and writes as many of them as fit. Returns the size of all decoded
 * bytes, or -1 if a % is not followed by two digits, or is %00. */
static long decode(const struct attempt *attempt, const char *from, const char *end, char *to, size_t size)
{
    long count = 0;
    for (; from < end; from++, count++) {
        int byte = (unsigned char)*from;
        if (attempt->encoded && byte == '%') {
            if (end - from < 3 || text_hex_digit(from[1]) < 0 || text_hex_digit(from[2]) < 0)
                return -1;
            byte = text_hex_digit(from[1]) * 16 + text_hex_digit(from[2]);
            from += 2;
        }
        if (byte == 0)
            return -1;
        if ((size_t)count + 1 < size)
            to[count] = (char)byte;
    }
    to[(size_t)count < size ? (size_t)count : size - 1] = '\0';
    return count;
}

static bool take_text(const struct attempt *attempt, const char *from, const char *end, char *to, size_t size)
{
    long count = decode(attempt, from, end, to, size);
    if (count < 0)
        return refuse(attempt, ENCODING);
    return (size_t)count < size || refuse(attempt, SIZES);
}

/* Reads USER or USER:PASSWORD. A colon with nothing around it stands for no password. */
static bool take_user(const struct attempt *attempt, const char *from, const char *end)
{
    struct url *url = attempt->url;
    const char *colon = memchr(from, ':', (size_t)(end - from));
    if (!take_text(attempt, from, colon != NULL ? colon : end, url->user, sizeof url->user))
        return false;
    if (colon != NULL && !take_text(attempt, colon + 1, end, url->password, sizeof url->password))
        return false;
    url->has_password = colon != NULL && (*url->user != '\0' || *url->password != '\0');
    return true;
}

/* Reads a number from `from` to `end`. */
static bool take_number(const char *from, const char *end, uint64_t max, int *number)
{
    char digits[DECIMALS];
    uint64_t value;
    if (end - from >= DECIMALS)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)(end - from), from);
    if (!number_parse(digits, max, &value))
        return false;
    *number = (int)value;
    return true;
}

static bool is_ipv6(const char *host)
{
    char address[URL_HOST];
    struct in6_addr found;
    snprintf(address, sizeof address, "%.*s", (int)strcspn(host, "%"), host); /* without its zone */
    return inet_pton(AF_INET6, address, &found) == 1;
}

static bool is_host(const char *host)
{
    for (; *host != '\0'; host++)
        if (*host <= ' ' || *host > '~' || strchr("/?#[]@:%\\\"", *host) != NULL)
            return false;
    return true;
}

/* Reads HOST, HOST:PORT, :PORT, [IPV6] or [IPV6]:PORT. */
static bool take_host(const struct attempt *attempt, const char *from, const char *end, int port,
                      const char *expected)
{
    struct url *url = attempt->url;
    bool bracket = from < end && *from == '[';
    const char *stop = memchr(from, bracket ? ']' : ':', (size_t)(end - from));
    if (bracket && stop == NULL)
        return refuse(attempt, expected);
    const char *rest = stop == NULL ? end : stop + bracket;
    if (!take_text(attempt, from + bracket, stop == NULL ? end : stop, url->host, sizeof url->host))
        return false;
    url->port = port;
    if (rest < end && (*rest != ':' || !take_number(rest + 1, end, PORT_MAX, &url->port) || url->port == 0))
        return refuse(attempt, expected);
    if (*url->host == '\0' && !bracket)
        strcpy(url->host, "127.0.0.1");
    return (bracket ? is_ipv6(url->host) : is_host(url->host)) || refuse(attempt, expected);
}

static bool take_db(const struct attempt *attempt, const char *from, const char *end)
{
    if (attempt->url->has_db || !take_number(from, end, INT_MAX, &attempt->url->db))
        return refuse(attempt, "one database, from 0 to 2147483647");
    attempt->url->has_db = true;
    return true;
}

/* Reads the end of a URL: nothing or ?db=DB. */
static bool take_query(const struct attempt *attempt, const char *query)
{
    if (*query == '\0')
        return true;
    if (strncmp(query, "?db=", 4) != 0)
        return refuse(attempt, "no other parameter than ?db=DB");
    return take_db(attempt, query + 4, query + strlen(query));
}

/* ---- whole addresses ------------------------------------------------------------------------------------- */

static bool take_url(const struct attempt *attempt, const char *body)
{
    const char *end = body + strcspn(body, "/?"), *at = memrchr(body, '@', (size_t)(end - body));
    const char *query = end + strcspn(end, "?"), *host = at == NULL ? body : at + 1;
    if (at != NULL && !take_user(attempt, body, at))
        return false;
    return take_host(attempt, host, end, PORT_OF_A_URL, "redis://HOST:PORT/DB, with a port from 1 to 65535") &&
           (query - end <= 1 || take_db(attempt, end + 1, query)) && take_query(attempt, query);
}

/* Reads HOST[:PORT][,HOST[:PORT]...]. */
static bool take_sentinels(const struct attempt *attempt, const char *from, const char *end)
{
    struct url *url = attempt->url;
    for (const char *comma; from != NULL; from = comma == NULL ? NULL : comma + 1) {
        comma = memchr(from, ',', (size_t)(end - from));
        memset(url->host, 0, sizeof url->host); /* equal addresses have equal bytes */
        if (url->sentinels == URL_SENTINELS || from == (comma == NULL ? end : comma))
            return refuse(attempt, "1 to 8 sentinels");
        if (!take_host(attempt, from, comma == NULL ? end : comma, PORT_OF_A_SENTINEL, SERVICE))
            return false;
        struct url_place *place = &url->sentinel[url->sentinels++];
        memcpy(place->host, url->host, sizeof place->host);
        place->port = url->port;
    }
    memcpy(url->host, url->sentinel[0].host, sizeof url->host);
    url->port = url->sentinel[0].port;
    return true;
}

static bool take_service(const struct attempt *attempt, const char *body)
{
    const char *end = body + strcspn(body, "/?"), *at = memrchr(body, '@', (size_t)(end - body));
    const char *query = end + strcspn(end, "?"), *name = *end == '/' ? end + 1 : end;
    const char *slash = name + strcspn(name, "/?");
    struct url *url = attempt->url;
    if (at != NULL && !take_user(attempt, body, at))
        return false;
    if (!take_sentinels(attempt, at == NULL ? body : at + 1, end) ||
        !take_text(attempt, name, slash, url->service, sizeof url->service))
        return false;
    if (*url->service == '\0' || !is_host(url->service))
        return refuse(attempt, SERVICE);
    return (query - slash <= 1 || take_db(attempt, slash + 1, query)) && take_query(attempt, query);
}

static bool take_unix(const struct attempt *attempt, const char *path)
{
    bool slashes = strncmp(path, "//", 2) == 0;
    path += slashes ? 2 : 0;
    const char *slash = strchr(path, '/');
    if (slash != NULL && slash > path && slash[-1] == '@') {
        if (!take_user(attempt, path, slash - 1))
            return false;
        path = slash;
    }
    if (slashes && *path != '/')
        return refuse(attempt, "a path that begins with a slash behind unix://");
    const char *end = path + strcspn(path, "?");
    long size = decode(attempt, path, end, attempt->url->host, PATH_MAX_BYTES + 1);
    if (size < 0)
        return refuse(attempt, ENCODING);
    if (size < 1 || size > PATH_MAX_BYTES) {
        snprintf(attempt->error, URL_ERROR, "expected a path of 1 to %d bytes, found %ld", PATH_MAX_BYTES,
                 size);
        return false;
    }
    return take_query(attempt, end);
}

static bool take_any(const struct attempt *attempt)
{
    const char *text = attempt->text;
    struct url *url = attempt->url;
    if (strncasecmp(text, "redis://", 8) == 0)
        return take_url(attempt, text + 8);
    if (strncasecmp(text, "rediss://", 9) == 0) {
        url->tls = true;
        return take_url(attempt, text + 9);
    }
    if (strncasecmp(text, "redis+sentinel://", 17) == 0) {
        url->transport = URL_SENTINEL;
        return take_service(attempt, text + 17);
    }
    if (strncasecmp(text, "rediss+sentinel://", 18) == 0) {
        url->transport = URL_SENTINEL;
        url->tls = true;
        return take_service(attempt, text + 18);
    }
    if (strncasecmp(text, "unix:", 5) == 0) {
        url->transport = URL_UNIX;
        return take_unix(attempt, text + 5);
    }
    if (*text == '\0' || strlen(text) >= URL_TEXT)
        return refuse(attempt, ADDRESS);
    return take_host(attempt, text, text + strlen(text), PORT_OF_AN_ADDRESS, ADDRESS);
}

bool url_parse(const char *text, struct url *url, char error[URL_ERROR])
{
    struct url found = {.transport = URL_TCP};
    const struct attempt attempt = {text, scheme_of(text) > 0, &found, error};
    if (!take_any(&attempt))
        return false;
    show(text, found.has_password, found.text);
    *url = found;
    return true;
}
