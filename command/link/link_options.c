/* SPDX-License-Identifier: MIT */
#include "link_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char LINK_OPTIONS_HELP[] =
    "  --redis URL        the server: redis://[USER[:PASSWORD]@]HOST[:PORT][/DB],\n"
    "                     rediss:// for TLS, unix:PATH, HOST:PORT or [IPV6]:PORT,\n"
    "                     or redis+sentinel://HOST[:PORT][,HOST...]/NAME, the\n"
    "                     primary that these sentinels name, whose own password is\n"
    "                     in TICKWHEEL_SENTINEL_PASSWORD; rediss+sentinel:// for TLS\n"
    "                     (default: 127.0.0.1:7379)\n"
    "  --user NAME        log in as this user\n"
    "  --db N             the database, 0 to 2147483647 (default 0)\n"
    "  --cacert FILE      for TLS, the certificates of the authorities to trust\n"
    "                     (default: those of the system)\n"
    "  --cert FILE        for TLS, our own certificate, if the server wants one\n"
    "  --key FILE         the key of that certificate\n";

static const char ADDRESS_USUAL[] = "127.0.0.1:7379", OTHER_VARIABLE[] = "REDISCLI_AUTH";

static bool take_address(const struct option_row *row)
{
    char error[URL_ERROR];
    if (url_parse(optarg, row->to, error))
        return true;
    complain("%s: --redis: %s", row->command, error);
    return false;
}

static bool take_user(const struct option_row *row)
{
    const char **user = row->to;
    *user = optarg;
    return (*optarg != '\0' && strlen(optarg) < URL_USER) || option_refuse(row, "a name of 1 to 255 bytes");
}

/* Takes the name of a file, which must be readable now: a name that is wrong does not become right later. */
static bool take_file(const struct option_row *row)
{
    const char **file = row->to;
    *file = optarg;
    if (access(optarg, R_OK) == 0)
        return true;
    complain("%s: %s: expected a file that can be read, found \"%s\": %s", row->command, row->name, optarg,
             strerror(errno));
    return false;
}

void link_options_add(struct option_table *table, struct link_options *options)
{
    struct link_target *target = &options->target;
    options_other(table, "--redis", take_address, &target->url);
    options_other(table, "--user", take_user, &options->user);
    options_number(table, "--db", &options->db, 0, INT_MAX);
    options_other(table, "--cacert", take_file, &target->cacert);
    options_other(table, "--cert", take_file, &target->cert);
    options_other(table, "--key", take_file, &target->key);
}

bool link_options_given(const struct option_table *table)
{
    static const char *const NAMES[] = {"--redis", "--user", "--db", "--cacert", "--cert", "--key"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (options_given(table, NAMES[i]))
            return true;
    return false;
}

/* Returns why the options contradict each other; NULL: they do not. */
static const char *contradiction(const struct link_options *options, bool has_db)
{
    const struct link_target *target = &options->target;
    bool files = target->cacert != NULL || target->cert != NULL || target->key != NULL;
    if (options->user != NULL && *target->url.user != '\0')
        return "--user: the URL names a user already";
    if (has_db && target->url.has_db)
        return "--db: the URL names a database already";
    if (files && !target->url.tls)
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

bool link_options_end(struct link_options *options, const struct option_table *table, const char *variable)
{
    struct url *url = &options->target.url;
    bool has_db = options_given(table, "--db");
    options->target.password_variable = variable;
    options->target.sentinel_password = getenv(LINK_SENTINEL_PASSWORD);
    if (!options_given(table, "--redis"))
        (void)url_parse(ADDRESS_USUAL, url, (char[URL_ERROR]){0});
    const char *error = contradiction(options, has_db);
    if (error != NULL) {
        complain("%s: %s", table->command, error);
        return false;
    }
    if (options->user != NULL)
        snprintf(url->user, sizeof url->user, "%s", options->user);
    if (has_db)
        url->db = (int)options->db;
    return take_password(options, table->command);
}
