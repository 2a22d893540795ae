/* SPDX-License-Identifier: MIT
 *
 * orders.c in C++. An order that is not paid within half an hour is cancelled. A buyer who pays receives a
 * voucher a day later. The program prints the same lines as orders.c.
 */
#include <cstdio>
#include <string>
#include <tickwheel/tickwheel.hpp>

using namespace std::chrono_literals;
using std::chrono::minutes;

namespace
{

class shop
{
  public:
    void place(const std::string &order)
    {
        clock_.put_in(order, 30min, [this](const tickwheel::task &task) { say(task, "unpaid, cancelled:"); });
    }

    /* The same key: the voucher's task replaces the task of the unpaid order, which cannot fire any
     * more. */
    void pay(const std::string &order)
    {
        clock_.put_in(order, 24h, [this](const tickwheel::task &task) { say(task, "voucher sent:"); });
    }

    void pass(minutes time)
    {
        clock_.advance(time);
    }

  private:
    void say(const tickwheel::task &task, const char *what) const
    {
        const auto now = std::chrono::duration_cast<minutes>(clock_.now().time_since_epoch()).count();
        std::printf("day %d %02d:%02d  %s %.*s\n", static_cast<int>(now / 1440),
                    static_cast<int>(now / 60 % 24), static_cast<int>(now % 60), what,
                    static_cast<int>(task.key().size()), task.key().data());
    }

    tickwheel::scheduler clock_{tickwheel::options().virtual_clock()};
};

} // namespace

int main()
{
    shop shop;
    shop.place("order 1");
    shop.pass(10min);
    shop.place("order 2");
    shop.pass(19min);
    shop.pay("order 1"); /* a minute before its time */
    shop.pass(3000min);
    return 0;
}
