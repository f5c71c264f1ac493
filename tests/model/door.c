/*
 * door.c - the count of a device's pages in every interleaving: never above the limit, and nobody
 * is refused while there is room. The source is included: the count is one function there.
 */
#include "src/memory/door.c"

#include "tests/model/model.h"
#include "tests/support/plain.h"

static quire_device device;

/* Not reached: it comes with the rest of the library. */
quire_result quire_backend_fail(quire_result result, int64_t native, const char *format, ...)
{
    (void)native;
    (void)format;
    return result;
}
static uint64_t refused, had;

static void begin(void)
{
    device.info.limits.most_pages = 2;
    qi_atomic_init_u64(&device.page_count, 0);
    refused = had = 0;
}

static void count(void)
{
    if (count_page(&device))
        refused++;
    else
        had++;
    MODEL_CHECK(qi_atomic_load_u64(&device.page_count) <= 2);
}

/* One that the backend refused, or that is given back. */
static void count_and_give(void)
{
    if (count_page(&device))
        refused++;
    else
        qi_atomic_sub_u64(&device.page_count, 1);
}

static void two_had(void)
{
    MODEL_CHECK(had == 2 && refused == 1 && device.page_count == 2);
}

static void count_is_right(void)
{
    MODEL_CHECK(device.page_count == had && had + refused >= 2 && refused <= 1);
}

static const model_scenario three = {.name = "three pages of two",
                                     .begin = begin,
                                     .threads = {count, count, count},
                                     .judge = two_had};
static const model_scenario given = {.name = "three pages of two, one given back",
                                     .begin = begin,
                                     .threads = {count, count, count_and_give},
                                     .judge = count_is_right};

static void the_limit_holds(void)
{
    model_holds(&three);
    model_holds(&given);
}

static void broken_ones_are_found(void)
{
    model_finds(&three, MODEL_TORN_EXCHANGE, "not true");
    model_finds(&given, MODEL_TORN_EXCHANGE, "not true");
}

int main(void)
{
    model_case("no more pages than the limit, and no fewer", the_limit_holds);
    model_case("a count that is broken is found out", broken_ones_are_found);
    return plain_end();
}
