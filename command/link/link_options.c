/* SPDX-License-Identifier: MIT */
#include "link_options.h"

#include "command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char LINK_OPTIONS_HELP[] =
    "  --redis URL        the server: redis://[USER[:PASSWORD]@]HOST[:PORT][/DB],\n"
    "                     rediss:// for TLS, unix:PATH, HOST:PORT or [IPV6]:PORT\n"
    "                     (default: 127.0.0.1:7379)\n"
    "  --user NAME        log in as this user\n"
    "  --db N             the database, 0 to 2147483647 (default 0)\n"
    "  --cacert FILE      for TLS, the certificates of the authorities to trust\n"
    "                     (default: those of the system)\n"
    "  --cert FILE        for TLS, our own certificate, if the server wants one\n"
    "  --key FILE         the key of that certificate\n";

static const char ADDRESS_USUAL[] = "127.0.0.1:7379", OTHER_VARIABLE[] = "REDISCLI_AUTH";

bool link_options_has(int code)
{
    return code >= LINK_OPTION_REDIS && code <= LINK_OPTION_KEY;
}

static bool take_address(struct link_options *options, const char *command, const char *text)
{
    char error[URL_ERROR];
    if (url_parse(text, &options->target.url, error))
        return true;
    complain("%s: --redis: %s", command, error);
    return false;
}

static bool take_db(struct link_options *options, const char *command)
{
    uint64_t number = 0;
    options->has_db = option_number(command, "--db", 0, INT_MAX, &number);
    options->db = (int)number;
    return options->has_db;
}

static bool take_user(struct link_options *options, const char *command)
{
    options->user = optarg;
    if (*optarg != '\0' && strlen(optarg) < URL_USER)
        return true;
    return option_refuse(command, "--user", "a name of 1 to 255 bytes", optarg);
}

/* Takes the name of a file, which must be readable now: a name that is wrong does not become right later. */
static bool take_file(const char **file, const char *command, const char *option)
{
    *file = optarg;
    if (access(optarg, R_OK) == 0)
        return true;
    complain("%s: %s: expected a file that can be read, found \"%s\": %s", command, option, optarg,
             strerror(errno));
    return false;
}

bool link_options_take(struct link_options *options, const char *command, int code)
{
    struct link_target *target = &options->target;
    switch (code) {
    case LINK_OPTION_REDIS:
        options->has_address = true;
        return take_address(options, command, optarg);
    case LINK_OPTION_USER:
        return take_user(options, command);
    case LINK_OPTION_DB:
        return take_db(options, command);
    case LINK_OPTION_CACERT:
        return take_file(&target->cacert, command, "--cacert");
    case LINK_OPTION_CERT:
        return take_file(&target->cert, command, "--cert");
    default:
        return take_file(&target->key, command, "--key");
    }
}

bool link_options_given(const struct link_options *options)
{
    const struct link_target *target = &options->target;
    return options->has_address || options->user != NULL || options->has_db || target->cacert != NULL ||
           target->cert != NULL || target->key != NULL;
}

/* Returns why the options contradict each other; NULL: they do not. */
static const char *contradiction(const struct link_options *options)
{
    const struct link_target *target = &options->target;
    bool files = target->cacert != NULL || target->cert != NULL || target->key != NULL;
    if (options->user != NULL && *target->url.user != '\0')
        return "--user: the URL names a user already";
    if (options->has_db && target->url.has_db)
        return "--db: the URL names a database already";
    if (files && target->url.transport != URL_TLS)
        return "--cacert, --cert and --key are for TLS: expected --redis rediss://...";
    if ((target->cert == NULL) != (target->key == NULL))
        return "expected both --cert and --key, found one of them";
    return NULL;
}

/* Takes the password from the environment, unless the URL holds one. */
static bool take_password(struct link_options *options, const char *command)
{
    struct url *url = &options->target.url;
    const char *variable = options->target.password_variable, *password = getenv(variable);
    if (password == NULL)
        password = getenv(variable = OTHER_VARIABLE);
    if (url->has_password || (password == NULL && *url->user == '\0'))
        return true;
    if (password == NULL) {
        complain("%s: %s %s: set the password in %s", command, options->user != NULL ? "--user" : "user",
                 url->user, options->target.password_variable);
        return false;
    }
    size_t size = strlen(password);
    if (size >= sizeof url->password) {
        complain("%s: %s: expected a password of at most %zu bytes, found %zu", command, variable,
                 sizeof url->password - 1, size);
        return false;
    }
    memcpy(url->password, password, size + 1);
    url->has_password = true;
    return true;
}

bool link_options_end(struct link_options *options, const char *command, const char *variable)
{
    struct url *url = &options->target.url;
    options->target.password_variable = variable;
    if (!options->has_address)
        take_address(options, command, ADDRESS_USUAL);
    const char *error = contradiction(options);
    if (error != NULL) {
        complain("%s: %s", command, error);
        return false;
    }
    if (options->user != NULL)
        snprintf(url->user, sizeof url->user, "%s", options->user);
    if (options->has_db)
        url->db = options->db;
    return take_password(options, command);
}
