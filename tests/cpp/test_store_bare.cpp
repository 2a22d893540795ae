/* SPDX-License-Identifier: MIT
 *
 * store.hpp with -fno-exceptions and -fno-rtti. A store that cannot be opened prints the message and ends the
 * program.
 */
#include "tests/support/eventually.h"
#include "tests/support/scratch.h"

#include <tickwheel/store.hpp>

#include <unistd.h>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this is to be compiled with -fno-exceptions and -fno-rtti"
#endif

int main()
{
    char folder[SCRATCH];
    if (scratch_folder(folder, "bare") != 0)
        return 1;
    const std::string file = std::string(folder) + "/tasks.db";
    std::uint64_t done = 0;
    {
        tickwheel::status made;
        tickwheel::store store(file, tickwheel::store_options(), made);
        store.handle("q", [](const tickwheel::job &) { return TW_ANSWER_DONE; });
        store.put(tickwheel::delayed("q", "a"));
        store.start();
        EVENTUALLY((done = store.stats().done) > 0);
    }
    unlink(file.c_str());
    unlink((file + "-tickwheel").c_str());
    const pid_t child = fork();
    if (child == 0) {
        tickwheel::store none(std::string(folder) + "/no/tasks.db");
        _exit(0);
    }
    const int how = eventually_exited(child);
    const bool gone = rmdir(folder) == 0;
    return done == 1 && gone && WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT ? 0 : 1;
}
