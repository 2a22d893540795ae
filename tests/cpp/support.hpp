/* SPDX-License-Identifier: MIT
 *
 * What the tests of tickwheel.hpp share.
 */
#ifndef TESTS_CPP_SUPPORT_HPP
#define TESTS_CPP_SUPPORT_HPP

#include <tickwheel/tickwheel.hpp>

#include <atomic>
#include <ostream>

#include <doctest/doctest.h>

/* Counts those that are alive. It can be moved and not copied, and a callable that has one cannot either. */
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
    /* False once it was destroyed, as far as that can be seen. */
    bool sound() const noexcept
    {
        return sound_ == 0x7E57;
    }

  private:
    volatile int sound_ = 0x7E57;
};

/* How many boxes callables have been given; whether there is memory for more. */
extern std::atomic<int> boxes;
extern bool no_boxes;

#endif
