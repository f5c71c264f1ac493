/*
 * pages.c - threads that need pages, in every interleaving: who joins a page that another thread is
 * making, who waits for one that leaves, that moves to another shard or whose end moves, who is
 * refused, and that nobody sleeps for ever.
 *
 * The whole library runs, on a backend that only counts. A call of the backend is a step, and so is
 * each taking of a lock (tests/model/pages/src/base/lock.h) and each atomic operation.
 */
#include "src/base/thread.c"  /* the number of a thread is one variable there */
#include "src/base/transit.c" /* and here the pages that it has under way */

#include "tests/model/pages_stage.h"

/* ---- joining -------------------------------------------------------------------------------- */

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

/* The share that two can have of a page is not promised to three. */
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

/* Pages that are not shared wake those who wait, and neither hold them nor change their share. */
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

/* ---- a making that fails -------------------------------------------------------------------- */

static void begin_refused_once(void)
{
    begin_plain();
    backend.refusals = 1;
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

/* ---- one page is all there is --------------------------------------------------------------- */

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
    begin_with(&(quire_memory_options){.fit = QUIRE_FIT_LINEAR, .pages = {.page_size = MIB}},
               16 * MIB);
}

/* A share that nobody could promise is there all the same once the page is. */
static void need_half(void)
{
    allocate(512 * KIB, false);
}

static void one_is_refused(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_SUCCESS) == 1 && backend.made == 1);
}

/* Who was refused waits for what was begun before, and not for those who are refused as well. */
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

/* ---- pages that leave ----------------------------------------------------------------------- */

static void keep_empty(bool dedicated, uint64_t size)
{
    const quire_allocation_options options = {.size = size, .dedicated = dedicated};
    CHECK_OK(quire_allocate(memory, &options, &kept));
    CHECK_OK(quire_free(memory, kept));
    kept.id = 0;
}

/* An empty shared page takes all the room, or the only number, that there is. */
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

static const model_scenario leaving_room = {.name = "a trim gives back the room that one needs",
                                            .begin = begin_empty_one_room,
                                            .threads = {trim, need_dedicated},
                                            .judge = judge_all_placed,
                                            .end = end};
static const model_scenario leaving_number = {.name = "a trim gives back the number that one needs",
                                              .begin = begin_empty_one_page,
                                              .threads = {trim, need_whole},
                                              .judge = judge_all_placed,
                                              .end = end};
static const model_scenario leaving_two = {.name = "a trim and two that need the only page",
                                           .begin = begin_empty_one_page,
                                           .threads = {trim, need_third, need_little},
                                           .judge = judge_all_placed,
                                           .end = end};

/* What is gone is not waited for. */
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

/* A page that no bound keeps goes with the free; its number is what the other thread needs. */
static void begin_taken(void)
{
    const quire_allocation_options options = {.size = MIB, .dedicated = true};
    begin_with(
        &(quire_memory_options){
            .pages = {.page_size = MIB, .max_pages = 1, .retained_empty_bytes = 1}},
        16 * MIB);
    CHECK_OK(quire_allocate(memory, &options, &kept));
}

/* Refused is who came before the free. */
static void freed_and_perhaps_had(void)
{
    judge_figures();
    MODEL_CHECK(got[0].result == QUIRE_SUCCESS);
    MODEL_CHECK(got[1].result == QUIRE_SUCCESS || got[1].result == QUIRE_ERROR_TOO_MANY_PAGES);
}

static const model_scenario given_back = {.name = "a free gives back the number that one needs",
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

/* The second thread takes the page over; the first finds it gone, and a place in it elsewhere. */
static const model_scenario moving = {.name = "the only page goes to another shard",
                                      .begin = begin_two_shards,
                                      .threads = {need_third, need_little},
                                      .judge = one_page_serves_all,
                                      .end = end};

/* ---- a page that grows ---------------------------------------------------------------------- */

static void begin_contiguous(uint64_t room)
{
    const quire_allocation_options options = {.size = MIB};
    begin_with(&(quire_memory_options){.contiguous = true,
                                       .address_space = 64 * MIB,
                                       .pages = {.page_size = MIB}},
               room);
    CHECK_OK(quire_allocate(memory, &options, &kept));
}

static void begin_growing(void)
{
    begin_contiguous(16 * MIB);
}

static void begin_growing_refused(void)
{
    begin_contiguous(16 * MIB);
    backend.refusals = 1;
}

/* The page has a free end, which takes all the room that the live range leaves. */
static void begin_with_end(void)
{
    quire_allocation second;
    const quire_allocation_options options = {.size = MIB};
    begin_contiguous(2 * MIB);
    CHECK_OK(quire_allocate(memory, &options, &second));
    CHECK_OK(quire_free(memory, second));
}

static const model_scenario cut_room = {.name = "a trim cuts the end whose room one needs",
                                        .begin = begin_with_end,
                                        .threads = {trim, need_dedicated},
                                        .judge = judge_all_placed,
                                        .end = end};
static const model_scenario cut_end = {.name = "a trim cuts the end that one needs",
                                       .begin = begin_with_end,
                                       .threads = {trim, need_much},
                                       .judge = judge_all_placed,
                                       .end = end};

static void one_has_grown(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_ERROR_NOT_PERMITTED) == 1 && count_of(QUIRE_SUCCESS) == ended - 1);
}

static const model_scenario growing = {.name = "two that need the page to grow",
                                       .begin = begin_growing,
                                       .threads = {need_third, need_third},
                                       .judge = one_page_serves_all,
                                       .end = end};
static const model_scenario growing_twice = {.name = "two that need the page to grow twice",
                                             .begin = begin_growing,
                                             .threads = {need_much, need_much},
                                             .judge = one_page_serves_all,
                                             .end = end};
static const model_scenario growing_fails = {.name =
                                                 "two that need the page to grow, which fails once",
                                             .begin = begin_growing_refused,
                                             .threads = {need_third, need_third},
                                             .judge = one_has_grown,
                                             .end = end};
static const model_scenario cut = {.name = "one needs the page to grow, one trims it",
                                   .begin = begin_growing,
                                   .threads = {need_third, trim},
                                   .judge = one_page_serves_all,
                                   .end = end};
static const model_scenario freed = {.name = "one needs the page to grow, one frees and one trims",
                                     .begin = begin_growing,
                                     .threads = {need_third, free_kept, trim},
                                     .judge = judge_all_placed,
                                     .end = end};

/* Each thread has a number and pages under way of its own. */
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
 * Whom the page will not hold makes another one meanwhile, and does not wait first. One preemption,
 * of the first maker, is all that this takes; with two, it happens to those who wait as well.
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

static void resized(void)
{
    holds(&growing);
    holds(&growing_twice);
    holds(&growing_fails);
    holds(&cut);
    holds(&cut_end);
    holds(&cut_room);
    holds(&freed);
}

static void broken_ones_are_found(void)
{
    const model_scenario *all[] = {&small_ones,   &failing,        &policy_shared, &budget_refused,
                                   &leaving_room, &leaving_number, &growing};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        finds(all[i], MODEL_NO_WAKE);
        finds(all[i], MODEL_BLIND_SLEEP);
    }
}

int main(int argc, char **argv)
{
    more = (uint32_t)plain_option(argc, argv, "--more", 0);
    model_case("threads join a page that is being made", joined);
    model_case("a page that cannot be made keeps nobody waiting", released);
    model_case("the only page serves all that it can", one_for_all);
    model_case("those who cannot have a page are refused soon", hopeless_ones);
    model_case("a page that leaves is awaited", left);
    model_case("a page that moves is awaited", moved);
    model_case("an end that moves is awaited", resized);
    model_case("wakes that are lost are found out", broken_ones_are_found);
    return plain_end();
}
