/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pages.c - threads that need pages, in every interleaving: which thread joins a page that another
 * thread creates, which waits for a page that is destroyed, moves to another shard or changes its
 * end, what happens while a shard is added, which request fails, and that no thread sleeps without
 * end.
 *
 * The whole library runs, on a backend that only counts. A call of the backend is a step, and so is
 * each taking of a lock (tests/model/pages/src/base/lock.h) and each atomic operation.
 */
#include "src/base/thread.c" /* with_numbers gives each modelled thread its own variables */

/* before the stage, whose variables have names that these headers use for parameters */
#include "tests/support/grow_shards.h"

#include "tests/model/pages_stage.h"

/* ---- joining a page ------------------------------------------------------------------------- */

static void begin_plain(void)
{
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB}}, 16 * MIB);
}

static void one_page_serves_all(void)
{
    judge_all_placed();
    MODEL_CHECK(backend.made == 1);
}

static void each_has_its_own(void)
{
    judge_all_placed();
    MODEL_CHECK(backend.made == ended);
}

static const model_scenario small_ones = {.name = "two requests that fit in one page",
                                          .begin = begin_plain,
                                          .threads = {need_little, need_third},
                                          .judge = one_page_serves_all,
                                          .end = end};
static const model_scenario three_small = {.name = "three requests that fit in one page",
                                           .begin = begin_plain,
                                           .threads = {need_third, need_little, need_third},
                                           .judge = one_page_serves_all,
                                           .end = end};
static const model_scenario large_ones = {.name = "two requests that need a page each",
                                          .begin = begin_plain,
                                          .threads = {need_much, need_much},
                                          .judge = each_has_its_own,
                                          .end = end};

/* The share that a page can promise to two is not promised to three. */
static void need_most_of_half(void)
{
    allocate(480 * KIB, false);
}

static void two_pages_serve_three(void)
{
    judge_all_placed();
    MODEL_CHECK(backend.made == 2);
}

static const model_scenario crowded = {
    .name = "three requests, a page for two",
    .begin = begin_plain,
    .threads = {need_most_of_half, need_most_of_half, need_most_of_half},
    .judge = two_pages_serve_three,
    .end = end};

/* Pages that are not shared wake the waiting threads, but do not hold their ranges or change their
   share. */
static const model_scenario interrupted = {
    .name = "two that share a page, and one that another page is made for",
    .begin = begin_plain,
    .threads = {need_most_of_half, need_most_of_half, need_dedicated},
    .judge = two_pages_serve_three,
    .end = end};

static void begin_shards(void)
{
    begin_with(&(quire_memory_options){.shards = 2, .pages = {.page_size = MIB}}, 16 * MIB);
}

static const model_scenario apart = {.name = "two requests in two shards",
                                     .begin = begin_shards,
                                     .threads = {need_little, need_little},
                                     .judge = each_has_its_own,
                                     .end = end};

/* ---- a creation that fails ------------------------------------------------------------------ */

static void begin_refused_once(void)
{
    begin_plain();
    backend.failures = 1;
}

static void one_failed(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_ERROR_NOT_PERMITTED) == 1 && count_of(QUIRE_SUCCESS) == ended - 1);
    MODEL_CHECK(backend.made == 1);
}

static const model_scenario failing = {.name = "two requests, the first page cannot be made",
                                       .begin = begin_refused_once,
                                       .threads = {need_third, need_third},
                                       .judge = one_failed,
                                       .end = end};
static const model_scenario failing_three = {.name =
                                                 "three requests, the first page cannot be made",
                                             .begin = begin_refused_once,
                                             .threads = {need_third, need_third, need_third},
                                             .judge = one_failed,
                                             .end = end};

/* ---- a single page is allowed --------------------------------------------------------------- */

static void begin_one_page(void)
{
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB, .max_pages = 1}}, 16 * MIB);
}

static void begin_one_budget(void)
{
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB}, .limit = MIB}, 16 * MIB);
}

static void begin_one_room(void)
{
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB}}, MIB);
}

static void begin_linear(void)
{
    begin_with(
        &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR, .pages = {.page_size = MIB}},
        16 * MIB);
}

/* A share that could not be promised is still available when the page exists. */
static void need_half(void)
{
    allocate(512 * KIB, false);
}

static void one_is_refused(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_SUCCESS) == 1 && backend.made == 1);
}

/* A thread whose request failed waits for pages begun earlier, and not for others that fail too. */
static void begin_no_room(void)
{
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB}}, MIB - 1);
}

static void all_are_refused(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY) == ended);
    MODEL_CHECK(backend.asked <= ended * ended);
}

static const model_scenario hopeless = {.name = "two that cannot have a page",
                                        .begin = begin_no_room,
                                        .threads = {need_whole, need_whole},
                                        .judge = all_are_refused,
                                        .end = end};
static const model_scenario hopeless_dedicated = {.name = "two that cannot have a dedicated page",
                                                  .begin = begin_no_room,
                                                  .threads = {need_dedicated, need_dedicated},
                                                  .judge = all_are_refused,
                                                  .end = end};

#define ONLY_PAGE(identifier, by, begins)                                                          \
    static const model_scenario identifier##_shared = {.name =                                     \
                                                           "two halves of the only page, by " by,  \
                                                       .begin = begins,                            \
                                                       .threads = {need_half, need_half},          \
                                                       .judge = one_page_serves_all,               \
                                                       .end = end};                                \
    static const model_scenario identifier##_refused = {.name = "two for the only page, by " by,   \
                                                        .begin = begins,                           \
                                                        .threads = {need_much, need_much},         \
                                                        .judge = one_is_refused,                   \
                                                        .end = end}
ONLY_PAGE(policy, "the policy", begin_one_page);
ONLY_PAGE(budget, "a budget", begin_one_budget);
ONLY_PAGE(room, "what the backend has", begin_one_room);
ONLY_PAGE(linear, "the fit", begin_linear);

/* ---- pages that are destroyed --------------------------------------------------------------- */

static void keep_empty(bool dedicated, uint64_t size)
{
    const quire_allocation_options options = {.size = size, .dedicated = dedicated};
    CHECK_OK(quire_allocate(memory, &options, &kept));
    CHECK_OK(quire_free(memory, kept));
    kept.id = 0;
}

/* An empty shared page takes all the room, or the only page number. */
static void begin_empty_one_room(void)
{
    begin_one_room();
    keep_empty(false, MIB);
}

static void begin_empty_one_page(void)
{
    begin_one_page();
    keep_empty(false, MIB);
}

static const model_scenario leaving_room = {.name = "a trim frees the room that a request needs",
                                            .begin = begin_empty_one_room,
                                            .threads = {trim, need_dedicated},
                                            .judge = judge_all_placed,
                                            .end = end};
static const model_scenario leaving_number = {.name =
                                                  "a trim frees the number that a request needs",
                                              .begin = begin_empty_one_page,
                                              .threads = {trim, need_whole},
                                              .judge = judge_all_placed,
                                              .end = end};
static const model_scenario leaving_two = {.name = "a trim and two that need the only page",
                                           .begin = begin_empty_one_page,
                                           .threads = {trim, need_third, need_little},
                                           .judge = judge_all_placed,
                                           .end = end};

/* No thread waits for a page that is already destroyed. */
static void begin_trimmed(void)
{
    begin_empty_one_page();
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    backend.made = 0;
}

static const model_scenario trimmed = {.name = "two for the only page, after a trim",
                                       .begin = begin_trimmed,
                                       .threads = {need_much, need_much},
                                       .judge = one_is_refused,
                                       .end = end};

/* The free destroys a page that no bound keeps; the other thread needs its number. */
static void begin_taken(void)
{
    const quire_allocation_options options = {.size = MIB, .dedicated = true};
    begin_with(
        &(quire_memory_options){
            .pages = {.page_size = MIB, .max_pages = 1, .retained_empty_bytes = 1}},
        16 * MIB);
    CHECK_OK(quire_allocate(memory, &options, &kept));
}

/* A request fails if it came before the free. */
static void freed_and_perhaps_had(void)
{
    judge_figures();
    MODEL_CHECK(got[0].result == QUIRE_SUCCESS);
    MODEL_CHECK(got[1].result == QUIRE_SUCCESS || got[1].result == QUIRE_ERROR_TOO_MANY_PAGES);
}

static const model_scenario given_back = {.name = "a free releases the number that a request needs",
                                          .begin = begin_taken,
                                          .threads = {free_kept, need_dedicated},
                                          .judge = freed_and_perhaps_had,
                                          .end = end};

/* ---- from shard to shard -------------------------------------------------------------------- */

static void begin_two_shards(void)
{
    begin_with(&(quire_memory_options){.shards = 2, .pages = {.page_size = MIB, .max_pages = 1}},
               16 * MIB);
    keep_empty(false, MIB); /* in the first shard */
}

/* The second thread takes the page over; the first finds it moved, and its range in another shard.
   */
static const model_scenario moving = {.name = "the only page goes to another shard",
                                      .begin = begin_two_shards,
                                      .threads = {need_third, need_little},
                                      .judge = one_page_serves_all,
                                      .end = end};

/* ---- shards that are added ------------------------------------------------------------------ */

/* The first request that is placed adds a shard. `kept` and all requests share the only page. */
static void begin_adding(void)
{
    const quire_allocation_options options = {.size = 300 * KIB};
    begin_with(&(quire_memory_options){.pages = {.page_size = MIB, .max_pages = 1}}, 16 * MIB);
    CHECK_OK(quire_allocate(memory, &options, &kept));
    backend.made = 0;
    allow_shards(memory, 2);
    grow_shards_soon(memory);
}

static void two_shards_have_one_page(void)
{
    judge_all_placed();
    MODEL_CHECK(backend.made == 0 && qi_shard_count(memory) == 2);
}

static const model_scenario adding_two = {.name = "two requests while a shard is added",
                                          .begin = begin_adding,
                                          .threads = {need_third, need_little},
                                          .judge = two_shards_have_one_page,
                                          .end = end};
static const model_scenario adding_freed = {.name = "a request and a free while a shard is added",
                                            .begin = begin_adding,
                                            .threads = {need_third, free_kept},
                                            .judge = two_shards_have_one_page,
                                            .end = end};
static const model_scenario adding_trimmed = {.name = "a request and a trim while a shard is added",
                                              .begin = begin_adding,
                                              .threads = {need_third, trim},
                                              .judge = two_shards_have_one_page,
                                              .end = end};
static const model_scenario adding_three = {.name =
                                                "two requests and a free while a shard is added",
                                            .begin = begin_adding,
                                            .threads = {need_third, need_little, free_kept},
                                            .judge = two_shards_have_one_page,
                                            .end = end};

/* ---- an elastic page ------------------------------------------------------------------------ */

static void begin_elastic(uint64_t room)
{
    const quire_allocation_options options = {.size = MIB};
    begin_with(&(quire_memory_options){.elastic = true,
                                       .address_space = 64 * MIB,
                                       .pages = {.page_size = MIB}},
               room);
    CHECK_OK(quire_allocate(memory, &options, &kept));
}

static void begin_backing(void)
{
    begin_elastic(16 * MIB);
}

static void begin_backing_refused(void)
{
    begin_elastic(16 * MIB);
    backend.failures = 1;
}

/* The page has a free chunk, which takes all the room that the live range leaves. */
static void begin_with_free(void)
{
    quire_allocation second;
    const quire_allocation_options options = {.size = MIB};
    begin_elastic(2 * MIB);
    CHECK_OK(quire_allocate(memory, &options, &second));
    CHECK_OK(quire_free(memory, second));
}

static const model_scenario taken_room = {.name = "a trim takes the chunk whose room one needs",
                                          .begin = begin_with_free,
                                          .threads = {trim, need_dedicated},
                                          .judge = judge_all_placed,
                                          .end = end};
static const model_scenario taken_chunk = {.name = "a trim takes the chunk that one needs",
                                           .begin = begin_with_free,
                                           .threads = {trim, need_much},
                                           .judge = judge_all_placed,
                                           .end = end};

static void one_was_refused(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_ERROR_NOT_PERMITTED) == 1 && count_of(QUIRE_SUCCESS) == ended - 1);
}

static const model_scenario backing = {.name = "two that need a chunk of the page",
                                       .begin = begin_backing,
                                       .threads = {need_third, need_third},
                                       .judge = one_page_serves_all,
                                       .end = end};
static const model_scenario backing_twice = {.name = "two that need two chunks of the page",
                                             .begin = begin_backing,
                                             .threads = {need_much, need_much},
                                             .judge = one_page_serves_all,
                                             .end = end};
static const model_scenario backing_fails = {.name = "two that need a chunk, which is refused once",
                                             .begin = begin_backing_refused,
                                             .threads = {need_third, need_third},
                                             .judge = one_was_refused,
                                             .end = end};
static const model_scenario trimmed_page = {.name = "one needs a chunk, one trims the page",
                                            .begin = begin_backing,
                                            .threads = {need_third, trim},
                                            .judge = one_page_serves_all,
                                            .end = end};
static const model_scenario freed = {.name = "one needs a chunk, one frees and one trims",
                                     .begin = begin_backing,
                                     .threads = {need_third, free_kept, trim},
                                     .judge = judge_all_placed,
                                     .end = end};

/* Each thread has its own number and unfinished pages. */
static model_scenario with_numbers(const model_scenario *scenario)
{
    model_scenario with = *scenario;
    with.locals[0] = (model_local){&own, sizeof own};
    with.locals[1] = (model_local){&under_way, sizeof under_way};
    with.is_strong = with.runs_out = true;
    for (actors = 0; actors < MODEL_MAX_THREADS && with.threads[actors];)
        actors++;
    with.preemptions = 2 + (actors == 2 ? more : 0);
    return with;
}

static void holds(const model_scenario *scenario)
{
    const model_scenario with = with_numbers(scenario);
    model_holds(&with);
}

/*
 * A thread whose range the page will not hold creates another page at the same time, and does not
 * wait first. One preemption, of the first creator, is enough for this; with two, it happens to
 * waiting threads too.
 */
static void holds_overlapping(const model_scenario *scenario)
{
    model_scenario once = with_numbers(scenario);
    holds(scenario);
    has_overlapped = false;
    once.preemptions = 1;
    model_holds(&once);
    CHECK(has_overlapped);
}

static void finds(const model_scenario *scenario, model_fault fault)
{
    const model_scenario with = with_numbers(scenario);
    model_finds(&with, fault, "nobody wakes");
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void joined(void)
{
    holds(&small_ones);
    holds_overlapping(&large_ones);
    holds(&three_small);
    holds_overlapping(&crowded);
    holds(&interrupted);
    holds_overlapping(&apart);
}

static void released(void)
{
    holds(&failing);
    holds(&failing_three);
}

static void one_for_all(void)
{
    holds(&policy_shared);
    holds(&policy_refused);
    holds(&budget_shared);
    holds(&budget_refused);
    holds(&room_shared);
    holds(&room_refused);
    holds(&linear_shared);
    holds(&linear_refused);
}

static void hopeless_ones(void)
{
    holds(&hopeless);
    holds(&hopeless_dedicated);
}

static void left(void)
{
    holds(&leaving_room);
    holds(&leaving_number);
    holds(&leaving_two);
    holds(&given_back);
    holds(&trimmed);
}

static void moved(void)
{
    holds(&moving);
}

static void added(void)
{
    holds(&adding_two);
    holds(&adding_freed);
    holds(&adding_trimmed);
    holds(&adding_three);
}

static void resized(void)
{
    holds(&backing);
    holds(&backing_twice);
    holds(&backing_fails);
    holds(&trimmed_page);
    holds(&taken_chunk);
    holds(&taken_room);
    holds(&freed);
}

static void broken_ones_are_found(void)
{
    const model_scenario *all[] = {&small_ones,   &failing,        &policy_shared, &budget_refused,
                                   &leaving_room, &leaving_number, &backing};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        finds(all[i], MODEL_NO_WAKE);
        finds(all[i], MODEL_BLIND_SLEEP);
    }
}

int main(int argc, char **argv)
{
    more = (uint32_t)plain_option(argc, argv, "--more", 0);
    model_case("threads join a page that is being created", joined);
    model_case("a page whose creation fails leaves no thread waiting", released);
    model_case("the only page serves every request that fits", one_for_all);
    model_case("requests without a possible page fail soon", hopeless_ones);
    model_case("requests wait for a page that is being destroyed", left);
    model_case("requests wait for a page that moves to another shard", moved);
    model_case("requests are served while a shard is added", added);
    model_case("requests wait for memory of an elastic page", resized);
    model_case("the model finds lost wakes", broken_ones_are_found);
    return plain_end();
}
