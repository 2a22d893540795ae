/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include "printable.h"
#include "screen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

void calls_wake(struct run *run, bool stop)
{
    while ((stop || atomic_load(&run->input_ended)) && write(run->wake[1], "", 1) < 0 && errno == EINTR)
        ;
}

bool calls_stop(struct run *run)
{
    return run->signalled || run->reader.stopped || run->failed || atomic_load(&run->damaged) ||
           atomic_load(&run->stuck) || screen_error() != 0;
}

static void print_bytes(const struct job *job, struct tw_bytes bytes, FILE *out)
{
    if (job->queue == NULL)
        fwrite(bytes.data, 1, bytes.size, out);
    else
        printable_write(bytes, false, SIZE_MAX, out);
}

static bool print_line(const struct job *job)
{
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return false;
    fprintf(out, "%s %" PRIu64 " ", job->due, job->late_us);
    print_bytes(job, job->id, out);
    if (job->payload.size > 0)
        fputc(' ', out);
    print_bytes(job, job->payload, out);
    fputc('\n', out);
    bool good = fclose(out) == 0 && screen_print((struct tw_bytes){line, size});
    free(line);
    return good;
}

bool calls_begin(struct run *run, const struct job *job, bool before_run)
{
    if (run->options->exec == NULL && !print_line(job)) {
        atomic_store(&run->stuck, true);
        return false;
    }
    tally_call(run->tally, job, before_run);
    return true;
}
