/* SPDX-License-Identifier: MIT
 *
 * The helpers that the tests of tickwheel.hpp share.
 */
#ifndef TESTS_CPP_SUPPORT_HPP
#define TESTS_CPP_SUPPORT_HPP

#include "tests/support/eventually.h"

#include <tickwheel/tickwheel.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>

#include <doctest/doctest.h>

/* Counts the tokens that are alive. A token can be moved but not copied, and the same is true of a callable
 * that has one. */
class token
{
  public:
    static std::atomic<int> live;

    token() noexcept
    {
        ++live;
    }
    token(token &&other) noexcept : sound_(other.sound_)
    {
        ++live;
    }
    token &operator=(token &&) = delete;
    ~token()
    {
        sound_ = 0;
        --live;
    }
    /* Returns false if the token was destroyed, as far as that can be seen. */
    bool sound() const noexcept
    {
        return sound_ == 0x7E57;
    }

  private:
    volatile int sound_ = 0x7E57;
};

/* Begins a thread, whose end eventually_joined() awaits. */
inline pthread_t begin_thread(std::function<void()> body)
{
    using function = std::function<void()>;
    pthread_t thread;
    const auto run = [](void *kept) -> void * {
        (*std::unique_ptr<function>(static_cast<function *>(kept)))();
        return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, new function(std::move(body))) != 0)
        std::abort();
    return thread;
}

/* How many boxes callables have received, and whether there is no memory for more. */
extern std::atomic<int> boxes;
extern bool no_boxes;

#endif
