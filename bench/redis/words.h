/* SPDX-License-Identifier: MIT
 *
 * The commands that client.c sends, made of the words of its command line. Only client.c includes this file.
 *
 * A command is a list of parts. Each part is text that is the same in every command, and a word that is not.
 * Example: TW.CANCEL tasks {id} has two parts:
 *   - "*3\r\n$9\r\nTW.CANCEL\r\n$5\r\ntasks\r\n$12\r\n" and the id;
 *   - "\r\n" and no word.
 *
 * The client has to make a command in less time than the server takes for it. Otherwise the server waits for
 * the client, and we measure the rate of the client. With a printf() for each word, the client took 1.1 us for
 * a TW.SEND that does nothing. The server took 0.9 us, or less whenever more commands had gathered meanwhile.
 * So this floor did not repeat.
 */
#ifndef BENCH_REDIS_WORDS_H
#define BENCH_REDIS_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

enum {
    WORDS_MAX = 32,
    TEXT_MAX = 1024,
    ID_DIGITS = 12,
    MS_DIGITS = 13, /* of a time in ms, until the year 2286 */
    PAYLOAD_MAX = 4096
};

static struct {
    unsigned connections, pipeline;
    uint64_t count, first, space, index, due, width, bytes, seed;
    bool until_zero;
    char **words;
    unsigned words_count;
} asked = {.connections = 1, .pipeline = 1, .count = UINT64_MAX, .width = 1};

static uint64_t stride = 1; /* the distance from one id to the next, with -s */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Chooses a step of about 0.618 of the space. If step and space have no common divisor, the steps reach each
 * id once. */
static void choose_stride(void)
{
    if (asked.space == 0)
        return;
    stride = asked.space * 618 / 1000 + 1;
    while (common_divisor(stride, asked.space) != 1)
        stride++;
}

static char *put_payload(char *to, uint64_t id)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t random = 0;
    for (uint64_t i = 0; i < asked.bytes; i++, random >>= 6) {
        if (i % 10 == 0)
            random = mixed(id * 1000 + i + 1);
        to[i] = letters[random & 63];
    }
    return to + asked.bytes;
}

/* Writes a number of `digits` digits. */
static char *put_number(char *to, uint64_t number, unsigned digits)
{
    for (char *at = to + digits; at > to; number /= 10)
        *--at = (char)('0' + number % 10);
    return to + digits;
}

enum { NO_WORD = 0, ID, DUE, NOW, PAYLOAD };
static struct part {
    char text[TEXT_MAX];
    size_t size;
    int word; /* after the text */
} part[WORDS_MAX + 1];
static unsigned parts;

static int word_of(const char *text)
{
    static const char *const words[] = {"", "{id}", "{due}", "{now}", "{payload}"};
    int word = PAYLOAD;
    while (word != NO_WORD && strcmp(text, words[word]) != 0)
        word--;
    return word;
}

static void make_parts(void)
{
    int size = snprintf(part[0].text, TEXT_MAX, "*%u\r\n", asked.words_count);
    for (unsigned k = 0; k < asked.words_count; k++) {
        const char *text = asked.words[k];
        int word = word_of(text);
        size_t bytes = word == NO_WORD   ? strlen(text)
                       : word == PAYLOAD ? asked.bytes
                       : word == ID      ? ID_DIGITS
                                         : MS_DIGITS;
        size += snprintf(part[parts].text + size, TEXT_MAX - (size_t)size, "$%zu\r\n%s", bytes,
                         word == NO_WORD ? text : "");
        part[parts].size = (size_t)size;
        if (word != NO_WORD) {
            part[parts++].word = word;
            size = 0;
        }
        size += snprintf(part[parts].text + size, TEXT_MAX - (size_t)size, "\r\n");
    }
    part[parts++].size = (size_t)size;
}

static char *put_word(char *to, int word, uint64_t id)
{
    switch (word) {
    case ID:
        return put_number(to, id, ID_DIGITS);
    case DUE:
        return put_number(to, asked.due + mixed(id + 1 + (asked.seed << 40)) % asked.width, MS_DIGITS);
    case NOW:
        return put_number(to, us_of(CLOCK_REALTIME) / US_PER_MS, MS_DIGITS);
    case PAYLOAD:
        return put_payload(to, id);
    default:
        return to;
    }
}

/* Writes command number `i`. Returns its end. */
static char *write_command(char *to, uint64_t i)
{
    uint64_t id = asked.first + (asked.space != 0 ? i % asked.space * stride % asked.space : i);
    for (unsigned k = 0; k < parts; k++) {
        memcpy(to, part[k].text, part[k].size);
        to = put_word(to + part[k].size, part[k].word, id);
    }
    return to;
}

/* The room that the longest command can take. */
static size_t command_room(void)
{
    return parts * (TEXT_MAX + (size_t)24 + asked.bytes); /* each part may have the payload */
}

/* Whether all words fit into the text of one part, with their sizes. */
static bool words_fit(void)
{
    size_t size = 16;
    for (unsigned k = 0; k < asked.words_count; k++)
        size += strlen(asked.words[k]) + 16;
    return size < TEXT_MAX;
}

#endif
