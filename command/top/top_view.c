/* SPDX-License-Identifier: MIT
 *
 * The live view. One thread reads, so that the user can press q even if the server does not answer. The main
 * thread draws when there is a new reading, a key was pressed or the terminal has changed its size, and
 * sleeps otherwise. Signal handlers and the reader write a byte into a pipe to wake it.
 */
#include "top_view.h"

#include "clock.h"
#include "command.h"
#include "task_line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Last, because they define macros with common names. */
#include <curses.h>
#include <term.h>

enum { LAST_S = 1 };

static int wake_pipe[2];
static volatile sig_atomic_t signalled;

/* Shared by the reader and the view, under `lock`. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct feed *feed;
    uint64_t interval_ns;
    bool paused, quit, waiting; /* waiting: the reader is between two readings */
    bool news, good;
    struct reading reading;
    char error[FEED_ERROR];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    struct history *history;
    bool ascii;
    char error[FEED_ERROR]; /* empty: no error */
    uint64_t lost_ns;       /* time of the first error */
} view;

static void wake(void)
{
    while (write(wake_pipe[1], "", 1) < 0 && errno == EINTR)
        ;
}

/* ---- the reader ------------------------------------------------------------------------------------------ */

/* Waits until it is time to read again. Returns false if the reader is to end. The lock is held. */
static bool wait_for_turn(uint64_t last_ns)
{
    shared.waiting = true;
    while (!shared.quit) {
        uint64_t next_ns = last_ns + shared.interval_ns;
        struct timespec next = {(time_t)(next_ns / 1000000000), (long)(next_ns % 1000000000)};
        if (shared.paused)
            pthread_cond_wait(&shared.changed, &shared.lock);
        else if (monotonic_ns() >= next_ns)
            break;
        else
            pthread_cond_timedwait(&shared.changed, &shared.lock, &next);
    }
    shared.waiting = false;
    return !shared.quit;
}

static void *read_on(void *arg)
{
    static struct reading reading;
    char error[FEED_ERROR] = "";
    uint64_t last_ns = monotonic_ns();
    (void)arg;
    pthread_mutex_lock(&shared.lock);
    while (wait_for_turn(last_ns)) {
        pthread_mutex_unlock(&shared.lock);
        last_ns = monotonic_ns();
        bool good = feed_read(shared.feed, &reading, error);
        pthread_mutex_lock(&shared.lock);
        shared.news = true;
        shared.good = good;
        if (good)
            shared.reading = reading;
        memcpy(shared.error, error, sizeof error);
        wake();
    }
    pthread_mutex_unlock(&shared.lock);
    return NULL;
}

/* Starts the reader with all signals blocked, because the main thread handles signals. */
static bool start_reader(pthread_t *reader)
{
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shared.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(reader, NULL, read_on, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

/* Ends the reader. If the reader waits for an answer, we do not wait for it; it ends with the process. */
static void end_reader(pthread_t reader)
{
    pthread_mutex_lock(&shared.lock);
    bool waiting = shared.waiting;
    shared.quit = true;
    pthread_cond_signal(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
    if (!waiting)
        return;
    pthread_join(reader, NULL);
    feed_free(shared.feed);
}

static void take_news(void)
{
    pthread_mutex_lock(&shared.lock);
    if (shared.news && shared.good) {
        history_add(view.history, &shared.reading);
        view.error[0] = '\0';
    } else if (shared.news) {
        if (view.error[0] == '\0')
            view.lost_ns = monotonic_ns();
        memcpy(view.error, shared.error, sizeof view.error);
    }
    shared.news = false;
    pthread_mutex_unlock(&shared.lock);
}

/* ---- colours --------------------------------------------------------------------------------------------- */

/* The foreground colours on terminals with 256 colours (`many`) and with 8 (`few`); -1 is the terminal's own
 * colour. */
static const struct look {
    short many, few;
    attr_t also;
} LOOKS[STYLES] = {
    [STYLE_HEAD] = {-1, -1, A_BOLD},
    [STYLE_LABEL] = {245, -1, 0},
    [STYLE_NUMBER] = {-1, -1, A_BOLD},
    [STYLE_PLAIN] = {-1, -1, 0},
    [STYLE_WARN] = {214, COLOR_YELLOW, 0},
    [STYLE_BAD] = {203, COLOR_RED, A_BOLD},
    [STYLE_AXIS] = {245, -1, 0},
    [STYLE_SPARK] = {73, COLOR_CYAN, 0},
    [STYLE_BARS] = {31, COLOR_BLUE, 0},
    [STYLE_BARS + 1] = {37, COLOR_CYAN, 0},
    [STYLE_BARS + 2] = {43, COLOR_CYAN, 0},
    [STYLE_BARS + 3] = {79, COLOR_CYAN, 0},
    [STYLE_BARS + 4] = {114, COLOR_GREEN, 0},
    [STYLE_BARS + 5] = {150, COLOR_GREEN, 0},
    [STYLE_BARS + 6] = {186, COLOR_YELLOW, 0},
    [STYLE_BARS + 7] = {222, COLOR_YELLOW, 0},
};

static attr_t attributes[STYLES];

static void find_looks(void)
{
    bool colours = has_colors() && start_color() == OK && use_default_colors() == OK;
    for (int i = 0; i < STYLES; i++) {
        attributes[i] = LOOKS[i].also;
        if (!colours)
            continue;
        init_pair((short)(i + 1), COLORS >= 256 ? LOOKS[i].many : LOOKS[i].few, -1);
        attributes[i] |= COLOR_PAIR(i + 1);
    }
    attributes[STYLE_TITLE] = A_REVERSE | A_BOLD;
    attributes[STYLE_ALARM] = A_REVERSE | A_BOLD;
    if (!colours)
        return;
    init_pair(STYLE_TITLE + 1, COLORS >= 256 ? 231 : COLOR_WHITE, COLORS >= 256 ? 24 : COLOR_BLUE);
    init_pair(STYLE_ALARM + 1, COLORS >= 256 ? 231 : COLOR_WHITE, COLORS >= 256 ? 124 : COLOR_RED);
    attributes[STYLE_TITLE] = A_BOLD | COLOR_PAIR(STYLE_TITLE + 1);
    attributes[STYLE_ALARM] = A_BOLD | COLOR_PAIR(STYLE_ALARM + 1);
}

/* ---- drawing --------------------------------------------------------------------------------------------- */

static void put_on_terminal(const struct sheet *sheet)
{
    for (int row = 0; row < sheet->rows; row++) {
        move(row, 0);
        for (int col = 0; col < sheet->cols; col++) {
            const struct cell *cell = &sheet->cell[row * sheet->cols + col];
            attrset(attributes[cell->style]);
            addstr(cell->text);
        }
    }
    refresh();
}

static void say_keys(char *text, size_t size)
{
    char interval[DURATION_SIZE];
    duration_print(shared.interval_ns, interval);
    snprintf(text, size, "q quit  p %s  +/- every %s", shared.paused ? "go on (paused)" : "pause", interval);
}

static void draw(void)
{
    struct sheet sheet;
    char keys[128], notice[FEED_ERROR + 40] = "";
    int rows, cols;
    getmaxyx(stdscr, rows, cols);
    if (!sheet_init(&sheet, rows, cols, view.ascii))
        return;
    say_keys(keys, sizeof keys);
    if (view.error[0] != '\0')
        snprintf(notice, sizeof notice, "connection lost for %d s: %s",
                 (int)((monotonic_ns() - view.lost_ns) / 1000000000), view.error);
    frame_draw(&sheet, view.history, cols, notice, keys);
    put_on_terminal(&sheet);
    sheet_fini(&sheet);
}

/* ---- keys ------------------------------------------------------------------------------------------------ */

static void change_interval(bool longer)
{
    uint64_t ns = longer ? shared.interval_ns * 2 : shared.interval_ns / 2;
    if (ns < TOP_INTERVAL_MIN_NS)
        ns = TOP_INTERVAL_MIN_NS;
    if (ns > TOP_INTERVAL_MAX_NS)
        ns = TOP_INTERVAL_MAX_NS;
    shared.interval_ns = ns;
}

/* Handles a key. Returns false if it quits. */
static bool take_key(int key)
{
    pthread_mutex_lock(&shared.lock);
    if (key == 'p' || key == ' ')
        shared.paused = !shared.paused;
    if (key == '+' || key == '-')
        change_interval(key == '-');
    pthread_cond_signal(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
    return key != 'q' && key != 'Q' && key != 3;
}

/* Handles all keys that were pressed. Curses reports a new size of the terminal as a key. Returns false to
 * quit. */
static bool take_keys(void)
{
    int key;
    while ((key = getch()) != ERR)
        if (!take_key(key))
            return false;
    return true;
}

/* Sleeps until a key, a reading, a signal or a new size arrives; while the connection is lost, at most a
 * second. Returns false if the view is to end. */
static bool wait_for_something(void)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wake_pipe[0], .events = POLLIN}};
    char bytes[64];
    poll(fds, 2, view.error[0] != '\0' ? 1000 : -1);
    if (fds[1].revents & POLLIN)
        (void)!read(wake_pipe[0], bytes, sizeof bytes);
    bool gone = (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    return !signalled && !gone;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static struct termios modes; /* of the terminal, before the view */

static void on_signal(int number)
{
    int saved = errno;
    signalled = number;
    alarm(LAST_S);
    wake();
    errno = saved;
}

/* Ends a view that is to end, if nobody reads its terminal: curses writes on until all has gone, whatever
 * signals come. A busy machine may only be late, and gets another second. The first alarm may be that of a
 * program that has started this one, as `perl -e 'alarm 9; exec @ARGV'` does, and ends the view. */
static void on_alarm(int number)
{
    int saved = errno;
    if (!signalled) {
        on_signal(number);
        return;
    }
    if (poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 0) != 0) {
        alarm(LAST_S);
        errno = saved;
        return;
    }
    signal(SIGTTOU, SIG_IGN);
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    _exit(COMMAND_WRONG);
}

static void (*curses_on_resize)(int);

/* The curses handler only sets a flag, which getch() checks later. A new size that arrives after getch() and
 * before we sleep would not be seen, so our handler also wakes us. */
static void on_resize(int number)
{
    int saved = errno;
    curses_on_resize(number);
    wake();
    errno = saved;
}

/* Installs our handler after that of curses, and keeps the latter, which ours calls. The size may have changed
 * since curses has read it, so it is read once more. */
static void wake_on_resize(void)
{
    struct sigaction action;
    sigaction(SIGWINCH, NULL, &action);
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
        return; /* this curses does not handle new sizes */
    curses_on_resize = action.sa_handler;
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
    raise(SIGWINCH);
}

static bool prepare(void)
{
    struct sigaction action = {.sa_handler = on_signal}, last = {.sa_handler = on_alarm};
    if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0 || tcgetattr(STDIN_FILENO, &modes) != 0)
        return false;
    sigaction(SIGALRM, &last, NULL);
    sigaction(SIGINT, &action, NULL); /* before curses, which handles only signals without a handler */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    return true;
}

static SCREEN *screen;

static bool open_terminal(void)
{
    const char *name = getenv("TERM");
    int found;
    bool known = setupterm(NULL, STDOUT_FILENO, &found) == OK, good = known && tigetstr("cup") != NULL;
    if (known)
        del_curterm(cur_term);
    screen = good ? newterm(NULL, stdout, stdin) : NULL;
    if (screen == NULL) {
        complain("tickwheel top: the terminal type TERM=\"%s\" %s; use --once or --json",
                 name == NULL ? "" : name, known ? "cannot move the cursor" : "is not known on this machine");
        return false;
    }
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    wake_on_resize();
    find_looks();
    return true;
}

int top_view(const struct top_options *options, struct feed *feed, struct history *history)
{
    pthread_t reader;
    view.history = history;
    view.ascii = options->ascii;
    shared.feed = feed;
    shared.interval_ns = options->interval_ns;
    if (!prepare() || !open_terminal())
        return COMMAND_WRONG;
    bool started = start_reader(&reader);
    do {
        take_news();
        draw();
    } while (started && wait_for_something() && take_keys());
    endwin();
    delscreen(screen);
    alarm(0);
    if (!started) {
        complain("tickwheel top: the thread that reads cannot be started");
        return COMMAND_WRONG;
    }
    end_reader(reader);
    return COMMAND_GOOD;
}
