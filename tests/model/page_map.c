/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_map.c - the map word of a page in every interleaving: users of the page find it mapped, one
 * thread at a time maps and unmaps it, and it is unmapped after the last user.
 */
#include "src/core/page/map.h"

#include "tests/model/model.h"
#include "tests/support/plain.h"

static quire_memory memory;
static qi_page page;
static uint64_t mapped; /* whether the page is mapped; written by the backend, read by users */
static uint32_t maps, failures, refused;

/* ---- the backend ---------------------------------------------------------------------------- */

quire_result qi_device_page_map(quire_device *device, qi_calls *calls, qi_device_page *native)
{
    (void)device;
    (void)calls;
    MODEL_CHECK(!model_read(&mapped));
    if (failures) {
        failures--;
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    }
    maps++;
    model_write(&mapped, 1);
    native->host = &mapped;
    return QUIRE_SUCCESS;
}

void qi_device_page_unmap(quire_device *device, qi_calls *calls, qi_device_page *native)
{
    (void)device;
    (void)calls;
    MODEL_CHECK(model_read(&mapped) == 1);
    model_write(&mapped, 0);
    native->host = NULL;
}

/* ---- the work of threads -------------------------------------------------------------------- */

static void begin(void)
{
    memory = (quire_memory){.maps_on_demand = true};
    page = (qi_page){.phase = QI_PAGE_LIVE};
    mapped = maps = failures = refused = 0;
}

static void begin_failing(void)
{
    begin();
    failures = 1;
}

static void use(void)
{
    char *host = NULL;
    if (qi_page_map_begin(&memory, &page, &host)) {
        MODEL_CHECK(!host);
        refused++;
        return;
    }
    MODEL_CHECK(host == (char *)&mapped);
    MODEL_CHECK(model_read(&mapped) == 1);
    qi_page_map_end(&memory, &page);
}

static void use_twice(void)
{
    use();
    use();
}

static void use_nested(void)
{
    char *host = NULL;
    if (qi_page_map_begin(&memory, &page, &host))
        return;
    use();
    MODEL_CHECK(model_read(&mapped) == 1);
    qi_page_map_end(&memory, &page);
}

static void is_unmapped(void)
{
    MODEL_CHECK(!mapped && !page.native.host && !page.map_word);
    MODEL_CHECK(maps && !refused);
}

/* A thread that waited for the call that failed makes its own. */
static void one_is_refused(void)
{
    MODEL_CHECK(!mapped && !page.native.host && !page.map_word);
    MODEL_CHECK(maps && refused == 1);
}

#define SCENARIO(text, first, a, b, c, last)                                                       \
    {                                                                                              \
        .name = text, .begin = first, .threads = {a, b, c}, .judge = last                          \
    }

static const model_scenario two = SCENARIO("two users", begin, use, use, NULL, is_unmapped),
                            nested = SCENARIO("a user within a user, beside another", begin,
                                              use_nested, use, NULL, is_unmapped),
                            fails = SCENARIO("two users, the first map fails", begin_failing, use,
                                             use, NULL, one_is_refused);

/* Few switches: all executions would take minutes. */
static const model_scenario again = {.name = "a user, and one that comes again",
                                     .begin = begin,
                                     .threads = {use, use_twice},
                                     .judge = is_unmapped,
                                     .preemptions = 3},
                            three = {.name = "three users",
                                     .begin = begin,
                                     .threads = {use, use, use},
                                     .judge = is_unmapped,
                                     .preemptions = 2},
                            three_fail = {.name = "three users, the first map fails",
                                          .begin = begin_failing,
                                          .threads = {use, use, use},
                                          .judge = one_is_refused,
                                          .preemptions = 2};

static void every_user_finds_it_mapped(void)
{
    model_holds(&two);
    model_holds(&again);
    model_holds(&nested);
    model_holds(&three);
}

static void a_failure_is_of_one_thread(void)
{
    model_holds(&fails);
    model_holds(&three_fail);
}

static void broken_ones_are_found(void)
{
    model_finds(&two, MODEL_TORN_EXCHANGE, "");
    model_finds(&two, MODEL_NO_ACQUIRE, "race");
    model_finds(&two, MODEL_NO_RELEASE, "race");
    model_finds(&two, MODEL_NO_WAKE, "");
}

int main(void)
{
    model_case("every user finds the page mapped", every_user_finds_it_mapped);
    model_case("a map that fails fails for one thread", a_failure_is_of_one_thread);
    model_case("the model finds broken map words", broken_ones_are_found);
    return plain_end();
}
