/* SPDX-License-Identifier: MIT
 *
 * The header with -fno-exceptions and -fno-rtti. It works, and where it would throw an exception, it prints
 * the message and ends the program.
 */
#include "tests/support/eventually.h"

#include <tickwheel/tickwheel.hpp>

#include <unistd.h>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this is to be compiled with -fno-exceptions and -fno-rtti"
#endif

using namespace std::chrono_literals;

static int failures;

static void check(bool good, const char *what)
{
    if (!good)
        std::printf("failed: %s\n", what);
    failures += !good;
}

/* Runs `body` in a child process. Returns the child's output on standard error, and whether it aborted. */
template <class Body> static std::string last_words(Body body)
{
    std::FILE *file = std::tmpfile();
    if (file == nullptr)
        return "no file";
    const pid_t child = fork();
    if (child == 0) {
        dup2(fileno(file), STDERR_FILENO);
        body();
        _exit(0);
    }
    const int how = eventually_exited(child);
    char words[2000];
    std::rewind(file);
    const std::size_t size = std::fread(words, 1, sizeof words, file);
    std::fclose(file);
    check(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT, "the program is aborted");
    return std::string(words, size);
}

static void use_both()
{
    int calls = 0;
    std::string text = "a string too long to be kept in place";
    tickwheel::status made;
    tickwheel::scheduler scheduler(tickwheel::options().virtual_clock(), made);
    check(made.ok(), "a scheduler is made");
    scheduler.after(5ms, [&] { calls++; });
    scheduler.set("key", 5ms, [&calls, text] { calls += text.size() > 10; });
    scheduler.advance(5ms);
    check(calls == 2, "both are called");
    tickwheel::wheel<> wheel;
    tickwheel::timer timer;
    wheel.add(timer, 1s);
    for (auto &due : wheel.due(1s))
        calls += &due == &timer;
    check(calls == 3, "the timer is due");
    check(std::error_code(tickwheel::status(TW_ERANGE)).message() == tw_strerror(TW_ERANGE),
          "errors have texts");
}

int main()
{
    use_both();
    const auto bad_tick = [] { tickwheel::scheduler scheduler(tickwheel::options().tick(1ns)); };
    check(last_words(bad_tick).find("tick_ns is 1: expected 1,000") != std::string::npos, "the value is named");
    const auto bad_level = [] { tickwheel::wheel<> wheel(tickwheel::make_geometry({{1, 1}})); };
    check(last_words(bad_level).find("level 0") != std::string::npos, "the level is named");
    return failures != 0;
}
