/* SPDX-License-Identifier: MIT
 *
 * A token is the hash of a number under a secret key, which each server draws from the server's random bytes.
 * So nobody can guess a token, and two servers do not give out the same ones. Random bytes for each token would
 * cost a sixth of a lease: the server makes them with SHA-256.
 */
#include "strings.h"

#include <endian.h>
#include <sodium/crypto_shorthash.h>
#include <stdbool.h>
#include <string.h>

static const uint64_t EACH = UINT64_C(0x0101010101010101); /* one in each byte */

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

/* Eight digits of a number, as bytes. Each nibble gets a byte, all at once. Where a nibble is above 9, adding 6
 * carries, and its digit is a letter. */
static uint64_t digits_of(uint32_t number)
{
    uint64_t nibbles = number;
    nibbles = (nibbles | nibbles << 16) & UINT64_C(0x0000ffff0000ffff);
    nibbles = (nibbles | nibbles << 8) & UINT64_C(0x00ff00ff00ff00ff);
    nibbles = (nibbles | nibbles << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t letters = (nibbles + EACH * 6) >> 4 & EACH;
    return htobe64(nibbles + EACH * '0' + letters * ('a' - '0' - 10));
}

/* The number that eight digits tell. Of other bytes any number. */
static uint32_t number_told_by(uint64_t digits)
{
    digits = be64toh(digits);
    uint64_t number = (digits & EACH * 15) + (digits >> 6 & EACH) * 9;
    number = (number | number >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    number = (number | number >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(number | number >> 16);
}

void tw__redis_token_write(uint64_t token, char text[TW__REDIS_TOKEN_TEXT])
{
    uint64_t digits[] = {digits_of((uint32_t)(token >> 32)), digits_of((uint32_t)token)};
    memcpy(text, digits, sizeof digits);
}

/* There is no branch for a digit: their random values would mislead it. */
uint64_t tw__redis_token_read(RedisModuleString *text)
{
    struct tw__redis_bytes bytes = tw__redis_string_bytes(text);
    uint64_t digits[2];
    _Static_assert(sizeof digits == TW__REDIS_TOKEN_TEXT, "a token has sixteen digits");
    if (bytes.size != TW__REDIS_TOKEN_TEXT)
        return 0;
    memcpy(digits, bytes.at, sizeof digits);
    uint32_t high = number_told_by(digits[0]), low = number_told_by(digits[1]);
    bool good =
        digits_of(high) == digits[0] && digits_of(low) == digits[1]; /* small letters alone are digits */
    return good ? (uint64_t)high << 32 | low : 0;
}
