/* SPDX-License-Identifier: MIT
 *
 * A fuzz target reads bytes that it does not trust, and ends the program at the first fault. With libFuzzer
 * (tools/fuzz) the program searches for such bytes. Without libFuzzer, fuzz_main.c runs the files of its
 * corpus.
 */
#ifndef TW_TESTS_FUZZ_H
#define TW_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program with a signal, unless this holds. libFuzzer then keeps the input. The sentence goes to the
 * descriptor, because a target may have put another stream in place of stderr. */
static inline void fuzz_require(bool holds, const char *sentence)
{
    if (holds)
        return;
    dprintf(STDERR_FILENO, "fuzz: %s\n", sentence);
    abort();
}

#endif
