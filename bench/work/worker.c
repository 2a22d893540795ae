/* SPDX-License-Identifier: MIT
 *
 * A worker: takes tasks, reads their ids and tokens from the replies, and ends them. It has one connection,
 * sends PIPELINE commands and waits for their replies.
 *
 *     worker PORT pass -p PID -n TASKS [-c COUNT] [-e PAIRS] [-P PIPELINE] -x SHAPE
 *                      -- TAKE... -- END... -- LAST...
 *         takes TASKS tasks, COUNT a call, and then ends them all, PAIRS a call. Prints for taking and for
 *         ending: tasks, us until the last reply, us of processor time of the server. PID is the server's.
 *     worker PORT live (the same)
 *         takes and ends by turns until TASKS tasks are ended. It waits for 5 ms when there are none to take.
 *     worker PORT keep (the same) [-r RATE] [-s SECONDS]
 *         takes TASKS tasks. Then it ends one a call, RATE calls a second, again from the first task on after
 *         the last one, for SECONDS. (The END is TW.TOUCH.) Prints a line when it has taken them, and the
 *         calls in the end.
 *
 * TAKE is a command. The command that ends tasks is the words of END, the id and the token of each task, and
 * the words of LAST. SHAPE tells where ids and tokens stand in a reply, as three numbers: in how many arrays
 * they are, the place of the id in the innermost array, and that of the token, or - if tasks have none.
 * Example: TW.TAKE has 2:1:2, XREADGROUP has 4:0:-.
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "../redis/net.h"

enum { DEPTH_MAX = 8, NAME_MAX_SIZE = 32, IDLE_US = 5000, FIRST_CAPACITY = 1 << 16 };

struct words {
    char **at;
    int count;
};

static struct {
    uint64_t tasks, count, pairs, pipeline, rate, seconds;
    pid_t server;
    int depth, id, token; /* the shape; token -1: none */
    struct words take, end, last;
} asked = {.count = 1, .pairs = 1, .pipeline = 1, .token = -1};

/* A string that is kept: of at most NAME_MAX_SIZE bytes. */
struct name {
    char at[NAME_MAX_SIZE];
    uint32_t size;
};

static struct taken {
    struct name id, token;
} * taken;
static uint64_t ids, tokens; /* read so far */
static int64_t sum;          /* of the integers replied */

/* ---- replies --------------------------------------------------------------------------------------------- */

struct block {
    char *at;
    size_t size, capacity;
};

static struct block in;
static size_t in_done; /* bytes of `in` that were read */
static struct level {
    long long left, index;
} levels[DEPTH_MAX];
static int depth;
static uint64_t replies;

static void reserve(struct block *block, size_t more)
{
    if (block->size + more <= block->capacity)
        return;
    block->capacity = (block->size + more) * 2 + FIRST_CAPACITY;
    block->at = realloc(block->at, block->capacity);
    if (block->at == NULL)
        fail("memory");
}

static void keep(struct name *name, const char *at, size_t size)
{
    if (size > sizeof name->at)
        fail("an id or token is too long");
    memcpy(name->at, at, size);
    name->size = (uint32_t)size;
}

/* Counts an element of the innermost array. Returns its place there. */
static long long step(void)
{
    if (depth == 0)
        return 0;
    levels[depth - 1].left--;
    return levels[depth - 1].index++;
}

/* Ends the arrays that are whole, and the reply if it is whole. */
static void unwind(void)
{
    while (depth > 0 && levels[depth - 1].left == 0)
        depth--;
    replies += depth == 0;
}

static void read_string(const char *at, size_t size)
{
    int in_arrays = depth;
    long long place = step();
    if (in_arrays == asked.depth && place == asked.id && ids < asked.tasks)
        keep(&taken[ids++].id, at, size);
    else if (in_arrays == asked.depth && place == asked.token && tokens < asked.tasks)
        keep(&taken[tokens++].token, at, size);
}

static void open_array(long long count)
{
    step();
    if (count <= 0)
        return;
    if (depth == DEPTH_MAX)
        fail("a reply is too deep");
    levels[depth++] = (struct level){count, 0};
}

/* Reads the next line, and its string if it has one. Returns false if not all of it is there. */
static bool read_item(void)
{
    const char *line = in.at + in_done, *end = memchr(line, '\n', in.size - in_done);
    if (end == NULL)
        return false;
    long long n = atoll(line + 1);
    size_t size = (size_t)(end - line) + 1, string = *line == '$' && n >= 0 ? (size_t)n + 2 : 0;
    if (in_done + size + string > in.size)
        return false;
    in_done += size + string;
    if (*line == '-') {
        fprintf(stderr, "worker: %.*s\n", (int)(end - line), line);
        exit(1);
    }
    if (*line == '*') {
        open_array(n);
    } else if (string > 0) {
        read_string(end + 1, (size_t)n);
    } else {
        sum += *line == ':' && depth == 0 ? n : 0;
        step();
    }
    unwind();
    return true;
}

/* Reads until so many replies have arrived. */
static void await(int fd, uint64_t count)
{
    for (replies = 0; replies < count;) {
        if (in_done < in.size && read_item())
            continue;
        memmove(in.at, in.at + in_done, in.size - in_done);
        in.size -= in_done;
        in_done = 0;
        reserve(&in, FIRST_CAPACITY);
        ssize_t n = read(fd, in.at + in.size, in.capacity - in.size);
        if (n <= 0)
            fail("read");
        in.size += (size_t)n;
    }
}

/* ---- commands -------------------------------------------------------------------------------------------- */

static void put_word(struct block *out, const char *at, size_t size)
{
    reserve(out, size + 32);
    out->size += (size_t)sprintf(out->at + out->size, "$%zu\r\n", size);
    memcpy(out->at + out->size, at, size);
    memcpy(out->at + out->size + size, "\r\n", 2);
    out->size += size + 2;
}

static void put_words(struct block *out, struct words words)
{
    for (int i = 0; i < words.count; i++)
        put_word(out, words.at[i], strlen(words.at[i]));
}

static void put_head(struct block *out, uint64_t words)
{
    reserve(out, 32);
    out->size += (size_t)sprintf(out->at + out->size, "*%llu\r\n", (unsigned long long)words);
}

static void put_take(struct block *out)
{
    put_head(out, (uint64_t)asked.take.count);
    put_words(out, asked.take);
}

/* A command that ends `count` tasks. */
static void put_end(struct block *out, const struct taken *from, uint64_t count)
{
    bool has_token = asked.token >= 0;
    put_head(out, (uint64_t)asked.end.count + (uint64_t)asked.last.count + count * (1 + has_token));
    put_words(out, asked.end);
    for (uint64_t i = 0; i < count; i++) {
        put_word(out, from[i].id.at, from[i].id.size);
        if (has_token)
            put_word(out, from[i].token.at, from[i].token.size);
    }
    put_words(out, asked.last);
}

/* ---- work ------------------------------------------------------------------------------------------------ */

static struct block out;

static uint64_t server_us(void)
{
    clockid_t clock;
    if (clock_getcpuclockid(asked.server, &clock) != 0)
        fail("the server's processor time");
    return us_of(clock);
}

static void send_and_wait(int fd, uint64_t commands)
{
    write_all(fd, out.at, out.size);
    await(fd, commands);
    out.size = 0;
}

/* Sends commands that take tasks, and waits for the replies. */
static void take_some(int fd, uint64_t commands)
{
    for (uint64_t i = 0; i < commands; i++)
        put_take(&out);
    send_and_wait(fd, commands);
    if (asked.token >= 0 && ids != tokens)
        fail("ids without tokens");
}

/* Ends the tasks from `first` up to `end`, at most PIPELINE commands. Returns the first that is left. */
static uint64_t end_some(int fd, uint64_t first, uint64_t end)
{
    uint64_t commands = 0;
    for (; commands < asked.pipeline && first < end; commands++) {
        uint64_t count = end - first < asked.pairs ? end - first : asked.pairs;
        put_end(&out, taken + first, count);
        first += count;
    }
    send_and_wait(fd, commands);
    return first;
}

static void take_all(int fd)
{
    while (ids < asked.tasks) {
        uint64_t before = ids, calls = (asked.tasks - ids + asked.count - 1) / asked.count;
        take_some(fd, calls < asked.pipeline ? calls : asked.pipeline);
        if (ids == before)
            fail("no task is left to take");
    }
}

static void say(uint64_t tasks, uint64_t wall_us, uint64_t cpu_us)
{
    printf("%llu %llu %llu\n", (unsigned long long)tasks, (unsigned long long)wall_us,
           (unsigned long long)cpu_us);
    fflush(stdout);
}

static void pass(int fd)
{
    uint64_t wall = us_of(CLOCK_MONOTONIC), cpu = server_us();
    take_all(fd);
    say(ids, us_of(CLOCK_MONOTONIC) - wall, server_us() - cpu);
    wall = us_of(CLOCK_MONOTONIC), cpu = server_us();
    for (uint64_t first = 0; first < ids;)
        first = end_some(fd, first, ids);
    say((uint64_t)sum, us_of(CLOCK_MONOTONIC) - wall, server_us() - cpu);
}

static void live(int fd)
{
    uint64_t wall = us_of(CLOCK_MONOTONIC), cpu = server_us(), done = 0;
    while (done < asked.tasks) {
        uint64_t commands = (asked.tasks - done + asked.count - 1) / asked.count;
        ids = tokens = 0;
        take_some(fd, commands < asked.pipeline ? commands : asked.pipeline);
        if (ids == 0)
            usleep(IDLE_US);
        for (uint64_t first = 0; first < ids;)
            first = end_some(fd, first, ids);
        done += ids;
    }
    say((uint64_t)sum, us_of(CLOCK_MONOTONIC) - wall, server_us() - cpu);
}

static void keep_on(int fd)
{
    uint64_t wall = us_of(CLOCK_MONOTONIC), cpu = server_us(), next = 0, calls = 0;
    take_all(fd);
    say(ids, us_of(CLOCK_MONOTONIC) - wall, server_us() - cpu);
    wall = us_of(CLOCK_MONOTONIC), cpu = server_us();
    for (uint64_t now = 0; now < asked.seconds * US_PER_S; now = us_of(CLOCK_MONOTONIC) - wall) {
        if (calls * US_PER_S > now * asked.rate) {
            usleep(100);
            continue;
        }
        uint64_t end = end_some(fd, next, ids);
        calls += end - next;
        next = end == ids ? 0 : end;
    }
    say(calls, us_of(CLOCK_MONOTONIC) - wall, server_us() - cpu);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: worker PORT pass|live|keep -p PID -n TASKS [-cePrs NUMBER] -x SHAPE"
                    " -- TAKE... -- END... -- LAST...\n");
    return 2;
}

static bool read_shape(const char *text)
{
    char token[8] = "";
    if (sscanf(text, "%d:%d:%7s", &asked.depth, &asked.id, token) != 3)
        return false;
    asked.token = strcmp(token, "-") == 0 ? -1 : atoi(token);
    return true;
}

/* The words up to the next --, or the end. */
static struct words read_words(char ***at, char **end)
{
    struct words words = {*at, 0};
    while (*at < end && strcmp(**at, "--") != 0) {
        words.count++;
        ++*at;
    }
    *at += *at < end;
    return words;
}

static bool read_number(int option, uint64_t number)
{
    switch (option) {
    case 'p':
        asked.server = (pid_t)number;
        return true;
    case 'n':
        asked.tasks = number;
        return true;
    case 'c':
        asked.count = number;
        return number > 0;
    case 'e':
        asked.pairs = number;
        return number > 0;
    case 'P':
        asked.pipeline = number;
        return number > 0;
    case 'r':
        asked.rate = number;
        return true;
    case 's':
        asked.seconds = number;
        return true;
    default:
        return false;
    }
}

static bool read_arguments(int argc, char **argv)
{
    int option;
    optind = 3;
    while ((option = getopt(argc, argv, "+p:n:c:e:P:r:s:x:")) != -1)
        if (option == 'x' ? !read_shape(optarg)
                          : !read_number(option, option == '?' ? 0 : strtoull(optarg, NULL, 10)))
            return false;
    char **at = argv + optind, **end = argv + argc;
    asked.take = read_words(&at, end);
    asked.end = read_words(&at, end);
    asked.last = read_words(&at, end);
    taken = calloc(asked.tasks + 1, sizeof *taken);
    return asked.server > 0 && asked.tasks > 0 && asked.depth > 0 && asked.take.count > 0 &&
           asked.end.count > 0 && taken != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4 || !read_arguments(argc, argv))
        return usage();
    int fd = dial((uint16_t)atoi(argv[1]));
    if (strcmp(argv[2], "pass") == 0)
        pass(fd);
    else if (strcmp(argv[2], "live") == 0)
        live(fd);
    else if (strcmp(argv[2], "keep") == 0)
        keep_on(fd);
    else
        return usage();
    return 0;
}
