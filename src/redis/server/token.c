/* SPDX-License-Identifier: MIT
 *
 * A token is the hash of a number under a secret key, which each server draws from the server's random bytes.
 * So nobody can guess a token, and two servers do not give out the same ones. Random bytes for each token would
 * cost a sixth of a lease: the server makes them with SHA-256.
 */
#include "strings.h"

#include <sodium/crypto_shorthash.h>
#include <stdbool.h>

enum { BITS_OF_DIGIT = 4, NO_DIGIT = 16 };

static struct {
    unsigned char key[crypto_shorthash_KEYBYTES];
    bool has_key;
    uint64_t number; /* of the last token */
} tokens;

uint64_t tw__redis_token_new(void)
{
    uint64_t token = 0;
    if (!tokens.has_key)
        RedisModule_GetRandomBytes(tokens.key, sizeof tokens.key);
    tokens.has_key = true;
    while (token == 0) {
        tokens.number++;
        (void)crypto_shorthash((unsigned char *)&token, (const unsigned char *)&tokens.number,
                               sizeof tokens.number, tokens.key);
    }
    return token;
}

void tw__redis_token_write(uint64_t token, char text[TW__REDIS_TOKEN_TEXT])
{
    for (int i = TW__REDIS_TOKEN_TEXT - 1; i >= 0; i--, token >>= BITS_OF_DIGIT)
        text[i] = "0123456789abcdef"[token & 15];
}

/* The value of a digit, or NO_DIGIT. Small letters alone are digits. */
static unsigned digit_of(char c)
{
    unsigned digit = (unsigned char)c - (unsigned)'0', letter = (unsigned char)c - (unsigned)'a';
    return digit < 10 ? digit : letter < 6 ? letter + 10 : NO_DIGIT;
}

uint64_t tw__redis_token_read(RedisModuleString *text)
{
    struct tw__redis_bytes bytes = tw__redis_string_bytes(text);
    uint64_t token = 0;
    if (bytes.size != TW__REDIS_TOKEN_TEXT)
        return 0;
    unsigned all = 0; /* digits are looked at without a branch, which their random values would mislead */
    for (size_t i = 0; i < TW__REDIS_TOKEN_TEXT; i++) {
        unsigned digit = digit_of(bytes.at[i]);
        all |= digit;
        token = token << BITS_OF_DIGIT | (digit & (NO_DIGIT - 1));
    }
    return all < NO_DIGIT ? token : 0;
}
