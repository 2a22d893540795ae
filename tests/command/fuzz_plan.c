/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the options of `tickwheel plan`: each line of the input is a word of its command line. A plan that is
 * printed goes to standard output alone, and is JSON if it begins as JSON; its numbers are numbers. A refusal
 * goes to standard error alone.
 */
#include "command.h"

#include "heard.h"
#include "tests/support/fuzz.h"

#include <getopt.h>
#include <jansson.h>
#include <string.h>

enum { WORDS = 24, TEXT_MAX = 4096 };

/* Cuts the text into words. Returns their number. */
static int cut(char *text, char **words)
{
    int count = 0;
    words[count++] = "plan";
    for (char *word = strtok(text, "\n"); word != NULL && count < WORDS; word = strtok(NULL, "\n"))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static void require_numbers(const char *out)
{
    static const char *const others[] = {"nan", " inf ", " inf,", " inf\n", "-inf", " -0 ", " -1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fuzz_require(strstr(out, others[i]) == NULL, "a plan has a number that is none, or below 0");
}

static void check_plan(const struct heard *heard)
{
    fuzz_require(heard->out_size > 0 && heard->err_size == 0, "a plan is not on standard output alone");
    if (heard->out[0] == '{') {
        json_t *root =
            json_loadb(heard->out, heard->out_size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
        fuzz_require(root != NULL, "a plan in JSON is not JSON");
        fuzz_require(heard_lines(heard->out, heard->out_size) == 1, "a plan in JSON is not one line");
        json_decref(root);
    }
    require_numbers(heard->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 1];
    char *words[WORDS + 1];
    struct heard heard;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    memcpy(text, data, size);
    text[size] = '\0';
    int count = cut(text, words);
    optind = 0; /* glibc: getopt_long() begins anew */
    heard_begin(&heard);
    int status = command_plan(count, words);
    heard_end(&heard);
    if (status == COMMAND_GOOD)
        check_plan(&heard);
    else
        fuzz_require(heard.out_size == 0 && heard_lines(heard.err, heard.err_size) > 0,
                     "a refusal is not on standard error alone");
    fuzz_require(status >= COMMAND_GOOD && status <= COMMAND_INPUT, "the exit status is another");
    heard_free(&heard);
    return 0;
}
