/* SPDX-License-Identifier: MIT
 *
 * The tests of tickwheel.hpp: doctest's main(), and the memory functions by which the tests count boxes.
 */
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.hpp"

std::atomic<int> token::live{0};
std::atomic<int> boxes{0};
bool no_boxes = false;

/* Only the header's boxes of callables use this form of new, so it counts boxes. */
void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    if (no_boxes)
        return nullptr;
    ++boxes;
    return std::malloc(size);
}

void operator delete(void *block, const std::nothrow_t &) noexcept /* for a box whose callable threw */
{
    std::free(block);
}

void operator delete(void *block) noexcept
{
    std::free(block);
}

void operator delete(void *block, std::size_t) noexcept
{
    std::free(block);
}

void *operator new(std::size_t size)
{
    void *block = std::malloc(size);
    if (block == nullptr)
        std::abort();
    return block;
}
