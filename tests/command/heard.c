/* SPDX-License-Identifier: MIT */
#include "heard.h"

#include "tests/support/fuzz.h"

#include <sys/mman.h>

void heard_begin(struct heard *heard)
{
    *heard = (struct heard){.before_out = stdout, .before_err = stderr};
    FILE *out = open_memstream(&heard->out, &heard->out_size);
    FILE *err = open_memstream(&heard->err, &heard->err_size);
    fuzz_require(out != NULL && err != NULL, "there is no memory");
    stdout = out;
    stderr = err;
}

void heard_end(struct heard *heard)
{
    fclose(stdout);
    fclose(stderr);
    stdout = heard->before_out;
    stderr = heard->before_err;
}

void heard_free(struct heard *heard)
{
    free(heard->out);
    free(heard->err);
}

void heard_require_clean(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i], next = (unsigned char)text[i + 1];
        fuzz_require(byte == '\n' || (byte >= ' ' && byte != 127), "a control character reaches the terminal");
        fuzz_require(byte != 0xC2 || next < 0x80 || next >= 0xA0, "a control character of UTF-8 reaches it");
    }
}

size_t heard_lines(const char *text, size_t size)
{
    size_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

const char *heard_file(const uint8_t *data, size_t size)
{
    static char path[40];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    fuzz_require(fd >= 0 && ftruncate(fd, 0) == 0, "there is no file in memory");
    fuzz_require(pwrite(fd, data, size, 0) == (ssize_t)size, "the file in memory is not written");
    return path;
}
