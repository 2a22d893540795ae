/* SPDX-License-Identifier: MIT
 *
 * The module's table of ids. The tests compare it with an array that knows the entries that should be in it,
 * and with an allocator that knows the blocks in use.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <malloc.h>
#include <src/redis/queues/bytes.h>
#include <src/redis/queues/table.h>
#include <stdlib.h>

/* ---- memory that is counted and can run out -------------------------------------------------------------- */

static size_t bytes_out, largest;
static long blocks_out, requests;
static long good_requests = -1; /* how many more requests succeed; -1: all */
static bool once;               /* only one request fails */

static bool refused(size_t size)
{
    requests++;
    largest = size > largest ? size : largest;
    if (good_requests < 0)
        return false;
    if (good_requests > 0) {
        good_requests--;
        return false;
    }
    if (once)
        good_requests = -1;
    return true;
}

static void *counted_realloc(void *old, size_t size)
{
    size_t before = old == NULL ? 0 : malloc_usable_size(old);
    if (refused(size))
        return NULL;
    void *block = realloc(old, size);
    assert_non_null(block);
    bytes_out += malloc_usable_size(block) - before;
    blocks_out += old == NULL;
    return block;
}

static void *counted_alloc(size_t size)
{
    return counted_realloc(NULL, size);
}

static void counted_free(void *old)
{
    assert_non_null(old);
    bytes_out -= malloc_usable_size(old);
    blocks_out--;
    free(old);
}

/* ---- entries --------------------------------------------------------------------------------------------- */

struct item {
    uint64_t hash;
    bool in;
    bool seen;
    unsigned size;
    char id[];
};

enum { MOST = 60000, LONGEST = 40 };

static const struct tw__redis_memory counted = {counted_alloc, counted_realloc, counted_free,
                                                malloc_usable_size};
static struct tw__redis_table_type type;
static struct tw__redis_table table;
static struct item *item[MOST];
static long keys_read;

static void key_of_item(const void *entry, const char **bytes, size_t *size)
{
    const struct item *it = entry;
    keys_read++;
    *bytes = it->id;
    *size = it->size;
}

/* Makes items whose ids have many lengths, the empty id too, and all kinds of bytes. No id except the empty
 * id is the start of another id. */
static struct item *new_item(unsigned n)
{
    unsigned size = n == 0 ? 0 : 4 + n % (LONGEST - 4);
    struct item *it = malloc(sizeof *it + LONGEST);
    assert_non_null(it);
    memset(it, 0, sizeof *it + LONGEST);
    memcpy(it->id, &n, sizeof n);
    it->size = size;
    it->hash = tw__redis_table_hash(&type, it->id, size);
    return it;
}

static void open_table(void)
{
    good_requests = -1;
    once = false;
    tw__redis_table_type_init(&type, key_of_item, &counted);
    tw__redis_table_init(&table, &type);
    assert_int_equal(bytes_out, 0);
    for (unsigned i = 0; i < MOST; i++)
        item[i] = new_item(i);
}

static void close_table(void)
{
    tw__redis_table_fini(&table);
    assert_int_equal(blocks_out, 0);
    assert_int_equal(bytes_out, 0);
    for (unsigned i = 0; i < MOST; i++)
        free(item[i]);
}

static void check_table(void)
{
    const char *fault = tw__redis_table_check(&table);
    if (fault != NULL)
        fail_msg("%s", fault);
    assert_int_equal(tw__redis_table_bytes(&table), bytes_out);
}

static void check_one(const struct item *it)
{
    assert_ptr_equal(tw__redis_table_find(&table, it->hash, it->id, it->size), it->in ? it : NULL);
}

static bool put_in(struct item *it)
{
    uint64_t count = tw__redis_table_count(&table);
    it->in = tw__redis_table_insert(&table, it->hash, it) == 0;
    assert_int_equal(tw__redis_table_count(&table), count + it->in);
    return it->in;
}

static void take_out(struct item *it)
{
    tw__redis_table_remove(&table, it->hash, it);
    it->in = false;
}

/* Moves an item that is in the table to another address. The old item is overwritten before the table learns
 * the new address. */
static void move_item(unsigned i)
{
    struct item *old = item[i];
    item[i] = malloc(sizeof *old + LONGEST);
    assert_non_null(item[i]);
    memcpy(item[i], old, sizeof *old + LONGEST);
    memset(old, 0xEE, sizeof *old + LONGEST);
    tw__redis_table_replace(&table, item[i]->hash, old, item[i]);
    free(old);
}

/* ---- entries are found ----------------------------------------------------------------------------------- */

static void step(struct rng *rng, unsigned most)
{
    unsigned i = (unsigned)rng_below(rng, most);
    check_one(item[i]);
    if (!item[i]->in)
        assert_true(put_in(item[i]));
    else if (rng_below(rng, 4) == 0)
        move_item(i);
    else
        take_out(item[i]);
    check_one(item[i]);
    check_one(item[rng_below(rng, most)]);
    assert_int_equal(tw__redis_table_bytes(&table), bytes_out);
}

static void what_goes_in_is_found_until_it_is_taken_out(void **state)
{
    static const unsigned most[] = {1, 2, 5, 9, 66, 130, 700, 5000, MOST};
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned k = 0; k < sizeof most / sizeof most[0]; k++) {
        unsigned steps = run_scaled(most[k] * 8 + 4000);
        open_table();
        for (unsigned s = 0; s < steps; s++) {
            step(&rng, most[k]);
            if (s % (1 + most[k]) == 0)
                check_table();
        }
        for (unsigned i = 0; i < most[k]; i++)
            if (item[i]->in)
                take_out(item[i]);
        check_table();
        assert_int_equal(bytes_out, 0); /* an empty table holds no memory */
        close_table();
    }
}

/* ---- sizes ----------------------------------------------------------------------------------------------- */

/* Millions of entries: numbers in an array. Each number is its own id. */
static uint64_t *number;

static void key_of_number(const void *entry, const char **bytes, size_t *size)
{
    keys_read++;
    *bytes = entry;
    *size = sizeof(uint64_t);
}

static uint64_t hash_of_number(uint64_t n)
{
    return tw__redis_table_hash(&type, &n, sizeof n);
}

static void open_numbers(unsigned n)
{
    good_requests = -1;
    tw__redis_table_type_init(&type, key_of_number, &counted);
    tw__redis_table_init(&table, &type);
    number = malloc(n * sizeof *number);
    assert_non_null(number);
    for (unsigned i = 0; i < n; i++)
        number[i] = i;
}

static void close_numbers(void)
{
    tw__redis_table_fini(&table);
    assert_int_equal(blocks_out, 0);
    free(number);
}

static void insert_numbers(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        assert_int_equal(tw__redis_table_insert(&table, hash_of_number(i), &number[i]), 0);
}

static void remove_numbers(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        tw__redis_table_remove(&table, hash_of_number(i), &number[i]);
}

static void find_numbers(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        assert_ptr_equal(
            tw__redis_table_find(&table, hash_of_number(i), (const char *)&number[i], sizeof *number),
            &number[i]);
}

static void an_entry_costs_less_than_eleven_bytes(void **state)
{
    unsigned most = run_scaled(2000000);
    (void)state;
    open_numbers(most);
    for (unsigned n = 1; n <= most; n++) {
        insert_numbers(n - 1, n);
        if (n <= 8)
            assert_true(bytes_out <= 32 + 8 * n);
        else if (n >= 1000)
            assert_true(bytes_out <= 11 * (size_t)n);
        else
            assert_true(bytes_out <= 12 * (size_t)n + 64);
    }
    check_table();
    close_numbers();
}

/* Entries come and go in equal numbers. The segments must not keep room for the largest number of entries
 * that they ever had. */
static void coming_and_going_does_not_add_up(void **state)
{
    unsigned n = run_scaled(400000);
    unsigned there = n / 2;
    (void)state;
    open_numbers(n);
    insert_numbers(0, there);
    for (unsigned i = there; i < n; i++) {
        insert_numbers(i, i + 1);
        remove_numbers(i - there, i - there + 1);
    }
    assert_true(bytes_out <= 12 * (size_t)there);
    check_table();
    close_numbers();
}

/* Half of the entries can go before any segments are joined. Until then the segments themselves must give back
 * room. */
static void what_is_left_after_many_have_gone_is_small(void **state)
{
    unsigned n = 40000;
    (void)state;
    open_numbers(n);
    insert_numbers(0, n);
    for (unsigned left = n; left >= 4000; left--) {
        assert_true(bytes_out <= 14 * (size_t)left);
        remove_numbers(left - 1, left);
    }
    check_table();
    close_numbers();
}

/* At any size of the table, one entry that comes and goes does not make it request memory again and again. */
static void at_no_size_does_it_grow_and_shrink_in_turns(void **state)
{
    enum { MANY = 1500, TURNS = 20 };
    (void)state;
    open_numbers(MANY);
    for (unsigned n = 1; n < MANY; n++) {
        insert_numbers(n - 1, n);
        insert_numbers(n, n + 1);
        remove_numbers(n, n + 1);
        requests = 0;
        for (unsigned turn = 0; turn < TURNS; turn++) {
            insert_numbers(n, n + 1);
            remove_numbers(n, n + 1);
        }
        assert_true(requests <= TURNS / 4);
    }
    close_numbers();
}

/* However many entries the table has, no call requests a large block, requests memory often, or looks at many
 * entries. */
static void it_grows_and_shrinks_a_little_at_a_time(void **state)
{
    unsigned n = run_scaled(1000000);
    (void)state;
    open_numbers(n);
    largest = 0;
    for (unsigned i = 0; i < 2 * n; i++) {
        unsigned k = i < n ? i : 2 * n - 1 - i;
        requests = keys_read = 0;
        if (i < n)
            insert_numbers(k, k + 1);
        else
            remove_numbers(k, k + 1);
        assert_true(requests <= 5);
        assert_true(keys_read <= 400); /* about 256 in a segment that splits; each run has another hash */
        if (i % (n / 3) == n / 4) {
            check_table();
            find_numbers(0, i < n ? i + 1 : k);
        }
    }
    assert_true(largest <= 64 * 1024);
    assert_int_equal(bytes_out, 0);
    close_numbers();
}

static void popping_gives_back_everything_on_the_way(void **state)
{
    unsigned n = run_scaled(600000);
    unsigned char *out = calloc(n, 1);
    (void)state;
    assert_non_null(out);
    open_numbers(n);
    insert_numbers(0, n);
    for (unsigned left = n; left > 0; left--) {
        uint64_t *entry = tw__redis_table_pop(&table);
        assert_true(entry >= number && entry < number + n);
        assert_int_equal(out[entry - number]++, 0);
        assert_int_equal(tw__redis_table_count(&table), left - 1);
        assert_true(bytes_out <= 12 * (size_t)left + 4096);
        if (left % (n / 5) == 1)
            check_table();
    }
    assert_null(tw__redis_table_pop(&table));
    assert_int_equal(bytes_out, 0);
    insert_numbers(0, 1000);
    check_table();
    close_numbers();
    free(out);
}

/* ---- tags that collide ----------------------------------------------------------------------------------- */

/* Hundreds of entries with the same tag, in one of several segments. All guesses are far off, and no tag
 * tells the entries apart. */
static void equal_tags_are_told_apart(void **state)
{
    enum { SAME = 300, OTHERS = 1500 };
    unsigned n = 0;
    (void)state;
    open_numbers(SAME + OTHERS);
    for (uint64_t id = UINT64_C(1) << 32; n < SAME; id++)
        if ((hash_of_number(id) & UINT64_C(0xFFF0000000000007)) == UINT64_C(0x7770000000000003))
            number[n++] = id;
    for (unsigned i = 0; i < SAME + OTHERS; i++) {
        assert_int_equal(tw__redis_table_insert(&table, hash_of_number(number[i]), &number[i]), 0);
        check_table();
    }
    for (unsigned i = 0; i < SAME + OTHERS; i++) {
        unsigned k = i * 7 % (SAME + OTHERS);
        uint64_t hash = hash_of_number(number[k]);
        assert_ptr_equal(tw__redis_table_find(&table, hash, (char *)&number[k], sizeof *number), &number[k]);
        tw__redis_table_remove(&table, hash, &number[k]);
        assert_null(tw__redis_table_find(&table, hash, (char *)&number[k], sizeof *number));
        check_table();
    }
    close_numbers();
}

/* ---- going through it ------------------------------------------------------------------------------------ */

static unsigned visits;

static void see(void *entry, void *arg)
{
    struct item *it = entry;
    assert_true(it->in);
    it->seen = true;
    visits++;
    assert_ptr_equal(arg, &visits);
}

static void forget_what_was_seen(void)
{
    visits = 0;
    for (unsigned i = 0; i < MOST; i++)
        item[i]->seen = false;
}

static void everything_is_walked_and_scanned_once_while_nothing_changes(void **state)
{
    static const unsigned sizes[] = {0, 1, 64, 65, 66, 200, 3000, MOST};
    (void)state;
    for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t at = 0;
        open_table();
        for (unsigned i = 0; i < sizes[k]; i++)
            assert_true(put_in(item[i]));
        while (tw__redis_table_walk(&table, &at, see, &visits))
            ;
        assert_int_equal(visits, sizes[k]);
        for (unsigned i = 0; i < sizes[k]; i++)
            assert_true(item[i]->seen);
        forget_what_was_seen();
        unsigned calls = 0;
        at = 0;
        do {
            at = tw__redis_table_scan(&table, at, see, &visits);
            assert_true(++calls <= MOST);
        } while (at != 0);
        assert_int_equal(visits, sizes[k]);
        for (unsigned i = 0; i < sizes[k]; i++)
            assert_true(item[i]->seen);
        forget_what_was_seen();
        close_table();
    }
}

/* Puts in or takes out some of the items that do not have to stay, so that the table becomes much larger or
 * smaller. */
static void let_change(struct rng *rng, unsigned stay, bool grow)
{
    uint64_t n = rng_below(rng, 1500);
    for (uint64_t k = 0; k < n; k++) {
        struct item *it = item[stay + rng_below(rng, MOST - stay)];
        if (it->in && !grow)
            take_out(it);
        else if (!it->in && grow)
            put_in(it);
    }
}

static void a_scan_sees_what_stays_while_the_table_grows_and_shrinks(void **state)
{
    unsigned rounds = run_scaled(160);
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    open_table();
    for (unsigned round = 0; round < rounds; round++) {
        unsigned stay = (unsigned)rng_below(&rng, 3000);
        uint64_t cursor = 0;
        unsigned calls = 0;
        for (unsigned i = 0; i < stay; i++)
            if (!item[i]->in)
                assert_true(put_in(item[i]));
        forget_what_was_seen();
        bool grow = rng_below(&rng, 2) == 0;
        do {
            cursor = tw__redis_table_scan(&table, cursor, see, &visits);
            if (rng_below(&rng, 8) == 0)
                grow = !grow;
            if (rng_below(&rng, 4) == 0)
                let_change(&rng, stay, grow);
            assert_true(++calls <= 4 * MOST);
        } while (cursor != 0);
        for (unsigned i = 0; i < stay; i++)
            assert_true(item[i]->seen);
        for (int k = 0; k < 3; k++) { /* cursors that no scan returned */
            cursor = rng_next(&rng);
            visits = 0;
            tw__redis_table_scan(&table, cursor, see, &visits);
            assert_int_equal(tw__redis_table_scan_size(&table, cursor), visits);
        }
        check_table();
    }
    close_table();
}

/* ---- moving its memory ----------------------------------------------------------------------------------- */

static long moves;

static void *copy_elsewhere(void *old)
{
    size_t size = malloc_usable_size(old);
    if (++moves % 5 == 0)
        return NULL;
    void *block = counted_alloc(size);
    memcpy(block, old, size);
    counted_free(old);
    return block;
}

static void all_its_blocks_can_be_moved(void **state)
{
    static const unsigned sizes[] = {0, 1, 64, 65, 3000, 300000};
    (void)state;
    for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t at = 0;
        open_numbers(300000);
        insert_numbers(0, sizes[k]);
        moves = 0;
        while (tw__redis_table_relocate(&table, &at, copy_elsewhere))
            ;
        assert_int_equal(moves, blocks_out);
        check_table();
        find_numbers(0, sizes[k]);
        remove_numbers(0, sizes[k]);
        check_table();
        close_numbers();
    }
}

/* ---- no memory ------------------------------------------------------------------------------------------- */

/* Random operations while requests for memory fail: all from the n-th on, or the n-th alone. */
static void operate_without_memory(struct rng *rng, unsigned most, unsigned steps)
{
    for (unsigned s = 0; s < steps; s++) {
        unsigned i = (unsigned)rng_below(rng, most);
        if (!item[i]->in)
            put_in(item[i]);
        else
            take_out(item[i]);
        check_one(item[i]);
        assert_int_equal(tw__redis_table_bytes(&table), bytes_out);
    }
}

static void every_request_for_memory_may_fail(void **state)
{
    unsigned rounds = run_scaled(400);
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned round = 0; round < rounds; round++) {
        unsigned most = round % 3 == 0 ? 40 : 900;
        open_table();
        good_requests = round / 2;
        once = round % 2 == 0;
        operate_without_memory(&rng, most, 3 * most);
        for (unsigned i = 0; i < most; i++)
            check_one(item[i]);
        check_table();
        good_requests = round % 7;
        for (unsigned i = 0; i < most; i++)
            if (item[i]->in)
                take_out(item[i]);
        check_table();
        good_requests = -1;
        for (unsigned i = 0; i < most; i++)
            assert_true(put_in(item[i]));
        check_table();
        while (tw__redis_table_pop(&table) != NULL)
            ;
        assert_int_equal(bytes_out, 0);
        close_table();
    }
}

/* The same while the directory gets its second chunk: 64 entries for each of 4,096 segments. */
static void a_chunk_that_cannot_be_had_is_done_without(void **state)
{
    enum { FULL = 64 * 4096, MORE = 2000 };
    (void)state;
    open_numbers(FULL + MORE);
    insert_numbers(0, FULL);
    for (int good = 0; good < 12; good++) {
        unsigned n = FULL;
        good_requests = good;
        while (n < FULL + MORE && tw__redis_table_insert(&table, hash_of_number(n), &number[n]) == 0)
            n++;
        assert_int_equal(tw__redis_table_count(&table), n);
        assert_int_equal(tw__redis_table_bytes(&table), bytes_out);
        good_requests = good == 11 ? -1 : 0;
        remove_numbers(FULL, n);
        check_table();
    }
    find_numbers(0, FULL);
    good_requests = -1;
    remove_numbers(0, FULL);
    assert_int_equal(bytes_out, 0);
    close_numbers();
}

static void an_address_of_more_than_48_bits_is_refused(void **state)
{
    (void)state;
    tw__redis_table_type_init(&type, key_of_item, &counted);
    tw__redis_table_init(&table, &type);
    assert_int_equal(tw__redis_table_insert(&table, 1, (void *)(uintptr_t)(UINT64_C(1) << 48)), -1);
    assert_int_equal(tw__redis_table_count(&table), 0);
    assert_int_equal(bytes_out, 0);
}

/* ---- the check itself ------------------------------------------------------------------------------------ */

static void assert_fault(const char *name)
{
    const char *fault = tw__redis_table_check(&table);
    assert_non_null(fault);
    assert_memory_equal(fault, name, 2);
}

static void the_check_sees_each_fault(void **state)
{
    (void)state;
    open_table();
    for (unsigned i = 0; i < 500; i++)
        assert_true(put_in(item[i]));
    struct tw__redis_segment *one = &table.chunk[0][0], *two = &table.chunk[0][1], whole = *one;
    check_table();
    table.chunk[0][0] = *two; /* the two segments have changed places */
    *two = whole;
    assert_fault("T1");
    *two = *one;
    *one = whole;
    uint64_t cell = one->cell[0];
    one->cell[0] ^= UINT64_C(1) << 48;
    assert_fault("T2");
    one->cell[0] = one->cell[one->count - 1];
    one->cell[one->count - 1] = cell;
    assert_fault("T3");
    one->cell[one->count - 1] = one->cell[0];
    one->cell[0] = cell;
    one->count = one->capacity + 1;
    assert_fault("T4");
    one->count = whole.count;
    table.chunk_segments *= 1024;
    assert_fault("T5");
    table.chunk_segments /= 1024;
    table.level++;
    assert_fault("T5");
    table.level--;
    table.count++;
    assert_fault("T6");
    table.count--;
    table.bytes++;
    assert_fault("T6");
    table.bytes--;
    check_table();
    cell = one->cell[1];
    one->cell[1] = one->cell[0];
    assert_fault("T1");
    one->cell[1] = cell;
    close_table();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_is_found_until_it_is_taken_out),
        cmocka_unit_test(an_entry_costs_less_than_eleven_bytes),
        cmocka_unit_test(coming_and_going_does_not_add_up),
        cmocka_unit_test(what_is_left_after_many_have_gone_is_small),
        cmocka_unit_test(at_no_size_does_it_grow_and_shrink_in_turns),
        cmocka_unit_test(it_grows_and_shrinks_a_little_at_a_time),
        cmocka_unit_test(popping_gives_back_everything_on_the_way),
        cmocka_unit_test(equal_tags_are_told_apart),
        cmocka_unit_test(everything_is_walked_and_scanned_once_while_nothing_changes),
        cmocka_unit_test(a_scan_sees_what_stays_while_the_table_grows_and_shrinks),
        cmocka_unit_test(all_its_blocks_can_be_moved),
        cmocka_unit_test(every_request_for_memory_may_fail),
        cmocka_unit_test(a_chunk_that_cannot_be_had_is_done_without),
        cmocka_unit_test(an_address_of_more_than_48_bits_is_refused),
        cmocka_unit_test(the_check_sees_each_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
