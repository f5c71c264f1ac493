/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp_plan.cpp - plans of quire.hpp: items, arenas, separations, options, progress, checks, misuse.
 * Built with exceptions and without.
 */
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/plain/cpp.h"

using items = std::vector<quire_plan_item>;

static const items three = {
    quire::plan_item(4096, 0, 2),
    quire::plan_item(1024, 1, 3),
    quire::plan_item(4096, 3, 4),
};

/* Items whose first plan is not the best, so that the work goes on: until a limit. */
static items hard_items()
{
    std::uint64_t state = 1;
    const auto below = [&state](std::uint64_t end) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (state >> 33) % end;
    };
    items made;
    for (int i = 0; i < 3000; i++) {
        const std::uint64_t first = below(1000);
        made.push_back(quire::plan_item(1 + below(100000), first, first + below(200)));
    }
    return made;
}

static bool are_same(const std::vector<quire_plan_place> &a, const std::vector<quire_plan_place> &b)
{
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const quire_plan_place &x, const quire_plan_place &y) {
                          return x.offset == y.offset && x.arena == y.arena;
                      });
}

static void test_items()
{
    const quire::plan_result made = quire::plan(three).value();
    CHECK(made.places.size() == 3 && made.info.peak_bytes == 5120 && made.info.proven_optimal);
    CHECK(made.places[0].offset == made.places[2].offset && made.places[1].arena == 1);

    const std::array<quire_plan_item, 2> two = {{three[0], three[1]}};
    CHECK(quire::plan(two)->info.peak_bytes == 5120);
    const quire_plan_item plain[] = {three[0], three[1]};
    const auto of_pointer = quire::plan(quire::plan_problem(plain, 2));
    CHECK(of_pointer->places.size() == 2 && of_pointer->info.peak_bytes == 5120);
    CHECK(quire::plan(items{quire::plan_item(100)})->info.peak_bytes == 100);

    const auto none = quire::plan(items());
    CHECK(none && none->places.empty() && none->info.proven_optimal);
    CHECK(quire::plan(quire::plan_problem(nullptr, 0)));
}

static void test_setters()
{
    const items list = {
        quire::plan_item(100, 0, 9).with_alignment(3),
        quire::plan_item(50, 0, 9).with_fixed_offset(0),
        quire::plan_item(10, 20, 30).with_alias_group(7),
        quire::plan_item(30, 25, 40).with_alias_group(7),
    };
    const auto made = quire::plan(list);
    CHECK(made->places[0].offset == 51 && made->places[1].offset == 0);
    CHECK(made->places[2].offset == made->places[3].offset && made->info.peak_bytes == 151);
    CHECK(made->check(quire::plan_problem(list)).value() == quire::plan_peaks{151});
}

static void test_arenas_and_separations()
{
    const items list = {quire::plan_item(60, 0, 0), quire::plan_item(60, 1, 1),
                        quire::plan_item(10, 0, 1).with_arena(2)};
    const std::vector<quire_plan_arena> arenas = {{100}, {0}};
    const std::vector<quire_plan_separation> apart = {{0, 1}};
    auto problem = quire::plan_problem(list).with_arenas(arenas);
    auto made = quire::plan(problem);
    CHECK(made->info.peak_bytes == 70 && made->places[2].arena == 2);
    CHECK(made->check(problem).value() == (quire::plan_peaks{60, 10}));

    problem.with_separations(apart);
    made = quire::plan(problem);
    CHECK(made->places[0].arena != made->places[1].arena && made->info.peak_bytes == 130);
    problem.with_separations(nullptr, 0).with_arenas(arenas.data(), 1);
    CHECK(quire::plan(problem).code() == QUIRE_ERROR_INVALID_ARGUMENT); /* arena 2 of 1 */
}

static void test_options()
{
    const items list = hard_items();
    const auto options = quire::plan_options().with_step_limit(3000000).with_seed(5);
    const auto one = quire::plan(list, options), two = quire::plan(list, options);
    CHECK(are_same(one->places, two->places) && one->info.steps == two->info.steps);
    const auto hasty = quire::plan(list, quire::plan_options().with_step_limit(1));
    CHECK(hasty->info.steps < one->info.steps && hasty->info.peak_bytes >= one->info.peak_bytes);
    const auto timed = quire::plan(list, quire::plan_options().with_time_limit(50000000));
    CHECK(timed->info.wall_ns >= 1 && timed->check(quire::plan_problem(list)));
    CHECK(one->info.lower_bound_bytes <= one->info.peak_bytes);
}

static void test_progress()
{
    const items list = hard_items();
    const auto long_options = quire::plan_options().with_time_limit(UINT64_C(60000000000));
    int calls = 0;
    std::uint64_t peak = 0;
    const auto ended = quire::plan(list, long_options, [&](const quire_plan_info &best) {
        peak = best.peak_bytes;
        return ++calls < 3;
    });
    CHECK(calls == 3 && peak && ended->info.peak_bytes <= peak);
    CHECK(ended->check(quire::plan_problem(list)) && ended->info.wall_ns < 30000000000);

    calls = 0; /* one that returns nothing, with a problem; it replaces that of the options */
    auto options = quire::plan_options().with_step_limit(20000000);
    options.progress = [](void *, const quire_plan_info *) -> bool { std::abort(); };
    const auto note = [&calls](const quire_plan_info &) { calls++; };
    CHECK(quire::plan(quire::plan_problem(list), options, note) && calls > 0);
    CHECK(quire::plan(three, quire::plan_options(), note)); /* too short for a call */
}

#if defined(__cpp_exceptions)
static void test_throwing_progress()
{
    const items list = hard_items();
    int calls = 0, caught = 0;
    try {
        (void)quire::plan(list, quire::plan_options().with_time_limit(UINT64_C(60000000000)),
                          [&](const quire_plan_info &) {
                              calls++;
                              throw std::string("stop");
                          });
    } catch (const std::string &thrown) {
        CHECK(thrown == "stop");
        caught++;
    }
    CHECK(calls == 1 && caught == 1);
    try {
        (void)quire::plan(items{quire::plan_item(0)}).value();
    } catch (const quire::error &error) {
        CHECK(error.code() == QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK(std::strstr(error.what(), "item 0 of the plan has size 0"));
        caught++;
    }
    CHECK(caught == 2);
}
#endif

static void test_checks()
{
    const quire::plan_problem problem(three);
    std::vector<quire_plan_place> places = {{0, 1}, {4096, 1}, {0, 1}};
    CHECK(quire::plan_check(problem, places).value() == quire::plan_peaks{5120});
    CHECK(quire::plan_check(problem, places.data(), 3));
    places[1].offset = 4095;
    const auto refused = quire::plan_check(problem, places);
    CHECK(refused.code() == QUIRE_ERROR_OVERLAP && *refused.message());
    places[1] = {4096, 2};
    CHECK(quire::plan_check(problem, places).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

static void test_misuse()
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    CHECK(quire::plan(items{quire::plan_item(1, 6, 5)}).code() == invalid);
    CHECK(quire::plan(quire::plan_problem(nullptr, 3)).code() == invalid);
    CHECK(quire::plan(items{quire::plan_item(UINT64_MAX)}).code() == invalid);
    CHECK(quire::plan(items{quire::plan_item(8).with_arena(2)}).code() == invalid);
    const auto full = quire::plan_problem(three);
    const std::vector<quire_plan_arena> small = {{4096}};
    CHECK(quire::plan(quire::plan_problem(full).with_arenas(small)).code() == QUIRE_ERROR_NO_SPACE);
    const items fixed = {quire::plan_item(4096).with_fixed_offset(1)};
    CHECK(quire::plan(quire::plan_problem(fixed).with_arenas(small)).code() ==
          QUIRE_ERROR_OUT_OF_RANGE);
    const items twice = {quire::plan_item(8).with_fixed_offset(0),
                         quire::plan_item(8).with_fixed_offset(4)};
    CHECK(quire::plan(twice).code() == QUIRE_ERROR_OVERLAP);
    auto wrong_options = quire::plan_options();
    wrong_options.unused[0] = 1;
    CHECK(quire::plan(three, wrong_options).code() == invalid);

    std::vector<quire_plan_place> places(2); /* one for each item is needed */
    const auto few = quire::plan_check(full, places);
    CHECK(few.code() == invalid && std::strstr(few.message(), "one place for each item"));
    CHECK(quire::plan_check(full, static_cast<quire_plan_place *>(nullptr), 3).code() == invalid);
    places.resize(4);
    CHECK(quire::plan_check(full, places).code() == invalid);
    CHECK(quire::plan_result().check(full).code() == invalid);
}

/* Counts beyond the limits and beyond 32 bits are refused, and nothing is read. */
static void test_counts()
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    const quire::plan_problem full(three);
    const quire_plan_arena arena = {0};
    const quire_plan_separation apart = {0, 1};
    std::vector<quire_plan_place> places(3);
    CHECK(quire::plan(quire::plan_problem(three.data(), (UINT32_C(1) << 30) + 1)).code() ==
          invalid);
    auto arenas = quire::plan_problem(full).with_arenas(&arena, 1025);
    CHECK(quire::plan(arenas).code() == invalid);
    CHECK(quire::plan_check(arenas, places).code() == invalid);
#if SIZE_MAX > UINT32_MAX
    const std::size_t beyond = (std::size_t(1) << 32) + 1; /* 1 in 32 bits */
    CHECK(quire::plan(quire::plan_problem(three.data(), beyond)).code() == invalid);
    CHECK(quire::plan(quire::plan_problem(full).with_arenas(&arena, beyond)).code() == invalid);
    auto many = quire::plan_problem(full).with_separations(&apart, beyond);
    CHECK(quire::plan(many).code() == invalid);
    CHECK(quire::plan_check(many, places).code() == invalid);
#endif
    CHECK(quire::plan(quire::plan_problem(full).with_separations(&apart, 1)));
}

int main()
{
    run_case("items of containers and pointers", test_items);
    run_case("alignments, fixed offsets and aliases", test_setters);
    run_case("arenas and separations", test_arenas_and_separations);
    run_case("limits and seeds", test_options);
    run_case("a progress ends the work", test_progress);
#if defined(__cpp_exceptions)
    run_case("what a progress throws ends the work", test_throwing_progress);
#endif
    run_case("plans are checked", test_checks);
    run_case("wrong problems are refused", test_misuse);
    run_case("counts beyond the limits are refused", test_counts);
    std::printf("1..%d\n", cases);
}
