/* SPDX-License-Identifier: MIT
 *
 * The main program of a fuzz target without libFuzzer: runs each file that the command line names.
 */
#include "fuzz.h"

#include <string.h>

/* Runs a file. Its bytes lie in a block of exactly their size, so that a sanitizer sees a read past the end. */
static void run(const char *path)
{
    FILE *file = fopen(path, "rb");
    dprintf(STDOUT_FILENO, "%s\n", path);
    fuzz_require(file != NULL && fseek(file, 0, SEEK_END) == 0, "the file cannot be read");
    long size = ftell(file);
    fuzz_require(size >= 0, "the file has no size");
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    fuzz_require(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size, "the file cannot be read");
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run(argv[i]);
    dprintf(STDOUT_FILENO, "%d inputs\n", argc - 1);
    return argc < 2; /* without files nothing was tested */
}
