/* SPDX-License-Identifier: MIT
 *
 * Talks to servers over links, for the tests of command/link.
 *
 *   link_talk wait|poll LINKS REPLY_MAX [OPTIONS] < commands
 *
 * Opens LINKS links to the server of the options (those of `tickwheel top`), sends all commands over each, and
 * prints the replies of each link, one a line. A command is a line of words; the word xN stands for N letters
 * x, and a reply of more than 60 bytes is printed as its size. `wait` uses link_open() and link_receive(), one
 * link after the other; `poll` has all links in one poll loop. The exit status is 1 after a link has broken,
 * whose error is then the last line of its output; " (closed)" and " (refused)" say so of the server.
 */
#include "link/link.h"
#include "link/link_options.h"

#include "command.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS_MAX = 8, LINE_MAX_BYTES = 4096, WORDS_MAX = 16, PATIENCE_MS = 30000, SHORT = 60 };

static struct {
    struct link_options options;
    char **lines;
    size_t count;
    bool broken;
} talk;

struct one {
    struct link *link;
    size_t replies;
    FILE *out;
    char *text; /* the output so far: links in one loop do not mix their lines */
    size_t size;
};

static void print_reply(FILE *out, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        fprintf(out, "%lld\n", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        fputs("nil\n", out);
    else if (reply->type == REDIS_REPLY_ARRAY)
        fprintf(out, "array of %zu\n", reply->elements);
    else if ((size_t)reply->len > SHORT)
        fprintf(out, "%zu bytes\n", (size_t)reply->len);
    else
        fprintf(out, "%s\n", reply->str);
}

static void fail(struct one *one, const char *error)
{
    bool closed = one->link != NULL && link_was_closed(one->link);
    bool refused = one->link != NULL && link_was_refused(one->link);
    fprintf(one->out, "%s%s%s\n", error, closed ? " (closed)" : "", refused ? " (refused)" : "");
    talk.broken = true;
}

/* Returns a word of a line as it is sent: xN as N letters x. */
static char *word_of(const char *word)
{
    char *end;
    unsigned long size = *word == 'x' ? strtoul(word + 1, &end, 10) : 0;
    if (size == 0)
        return strdup(word);
    char *made = malloc(size + 1);
    memset(made, 'x', size);
    made[size] = '\0';
    return made;
}

static void send_line(struct link *link, const char *line)
{
    char copy[LINE_MAX_BYTES];
    const char *words[WORDS_MAX];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL && count < WORDS_MAX; word = strtok(NULL, " "))
        words[count++] = word_of(word);
    link_send(link, count, words, NULL);
    for (int i = 0; i < count; i++)
        free((void *)words[i]);
}

static void send_all(struct one *one)
{
    for (size_t i = 0; i < talk.count; i++)
        send_line(one->link, talk.lines[i]);
}

static void take(struct one *one, redisReply *reply)
{
    print_reply(one->out, reply);
    one->replies++;
    freeReplyObject(reply);
}

static void talk_waiting(struct one *one)
{
    char error[LINK_ERROR];
    one->link = link_open(&talk.options.target, PATIENCE_MS, error);
    if (one->link == NULL) {
        fail(one, error);
        return;
    }
    send_all(one);
    while (one->replies < talk.count) {
        redisReply *reply = link_receive(one->link, PATIENCE_MS, error);
        if (reply == NULL) {
            fail(one, error);
            return;
        }
        take(one, reply);
    }
}

/* Pumps a link dry. Returns whether it needs more. */
static bool pump(struct one *one)
{
    char error[LINK_ERROR];
    redisReply *reply;
    int found;
    while ((found = link_pump(one->link, &reply, error)) > 0)
        take(one, reply);
    if (found < 0)
        fail(one, error);
    return found == 0 && one->replies < talk.count;
}

static void talk_polling(struct one *ones, int links)
{
    bool open[LINKS_MAX] = {false};
    char error[LINK_ERROR];
    int left = 0;
    for (int i = 0; i < links; i++) {
        ones[i].link = link_begin(&talk.options.target, error);
        open[i] = ones[i].link != NULL;
        left += open[i];
        if (open[i])
            send_all(&ones[i]); /* nothing goes out before the login */
        else
            fail(&ones[i], error);
    }
    while (left > 0) {
        struct pollfd waiting[LINKS_MAX];
        for (int i = 0; i < links; i++)
            waiting[i] = (struct pollfd){.fd = open[i] ? link_fd(ones[i].link) : -1,
                                         .events = open[i] ? link_events(ones[i].link) : 0};
        if (poll(waiting, (nfds_t)links, PATIENCE_MS) == 0) {
            for (int i = 0; i < links; i++)
                if (open[i])
                    fail(&ones[i], "nothing came in time");
            return;
        }
        left = 0;
        for (int i = 0; i < links; i++)
            if (open[i] && (waiting[i].revents == 0 || pump(&ones[i])))
                left++;
            else
                open[i] = false;
    }
}

static void read_lines(void)
{
    char line[LINE_MAX_BYTES];
    size_t room = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (talk.count == room)
            talk.lines = realloc(talk.lines, (room = room * 2 + 16) * sizeof *talk.lines);
        line[strcspn(line, "\n")] = '\0';
        talk.lines[talk.count++] = strdup(line);
    }
}

static bool read_options(int argc, char **argv)
{
    struct option_table table = {.command = "link_talk"};
    link_options_add(&table, &talk.options);
    return options_read(&table, argc, argv) == -1 &&
           link_options_end(&talk.options, &table, "TICKWHEEL_TALK_PASSWORD");
}

int main(int argc, char **argv)
{
    struct one ones[LINKS_MAX] = {0};
    if (argc < 4 || !read_options(argc - 3, argv + 3))
        return COMMAND_INPUT;
    int links = atoi(argv[2]);
    talk.options.target.reply_max = strtoul(argv[3], NULL, 10);
    signal(SIGPIPE, SIG_IGN);
    read_lines();
    for (int i = 0; i < links; i++)
        ones[i].out = open_memstream(&ones[i].text, &ones[i].size);
    if (strcmp(argv[1], "poll") == 0)
        talk_polling(ones, links);
    else
        for (int i = 0; i < links; i++)
            talk_waiting(&ones[i]);
    for (int i = 0; i < links; i++) {
        fclose(ones[i].out);
        fputs(ones[i].text, stdout);
        free(ones[i].text);
        link_close(ones[i].link);
    }
    for (size_t i = 0; i < talk.count; i++)
        free(talk.lines[i]);
    free(talk.lines);
    return talk.broken ? COMMAND_WRONG : COMMAND_GOOD;
}
