/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/plan.hpp - plans: offsets for ranges whose lifetimes are known (quire/plan.h).
 *
 *     const std::vector<quire_plan_item> items = {
 *         quire::plan_item(4096, 0, 2),
 *         quire::plan_item(1024, 1, 3).with_alignment(256),
 *         quire::plan_item(4096, 3, 4),
 *     };
 *     auto made = quire::plan(items).value();
 *     // made.info.peak_bytes is 5120, and made.places[0].offset equals made.places[2].offset
 *
 * Thread-safety: the functions have no state. Any thread may call them at any time.
 */
#ifndef QUIRE_HPP_PLAN_HPP
#define QUIRE_HPP_PLAN_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "quire/hpp/callback.hpp"
#include "quire/hpp/result.hpp"
#include "quire/plan.h"

namespace quire
{
namespace detail
{

/* Whether a type is a container that has Element side by side: data() and size(). */
template <class Container, class Element, class = void> struct has_elements : std::false_type {
};

template <class Container, class Element>
struct has_elements<
    Container, Element,
    std::enable_if_t<std::is_same<
        std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const Container &>().data())>>,
        Element>::value>> : std::true_type {
};

template <class Container, class Element>
using if_elements = std::enable_if_t<has_elements<Container, Element>::value>;

/* Sets an array of a problem. A count that does not fit stays too large, and null lets the function
   of C refuse it. */
template <class Element>
void set_array(const Element *&array, std::uint32_t &number, const Element *data,
               std::size_t count) noexcept
{
    const bool fits = count <= UINT32_MAX;
    array = fits ? data : nullptr;
    number = fits ? static_cast<std::uint32_t>(count) : UINT32_MAX;
}

} // namespace detail

/* quire_plan_item */
struct plan_item : quire_plan_item {
    /* `bytes` must be above 0 when the item is used; `last` is at or after `first`. */
    explicit plan_item(std::uint64_t bytes = 0, std::uint64_t first = 0,
                       std::uint64_t last = 0) noexcept
        : quire_plan_item()
    {
        size = bytes;
        first_use = first;
        last_use = last;
    }

    /* of the offset in its arena, any number; 0: 1 */
    plan_item &with_alignment(std::uint64_t bytes) noexcept
    {
        alignment = bytes;
        return *this;
    }

    /* the offset that the item has; if there are several arenas, with_arena must name one */
    plan_item &with_fixed_offset(std::uint64_t offset) noexcept
    {
        is_fixed = true;
        fixed_offset = offset;
        return *this;
    }

    /* 1 is the first arena; 0: any */
    plan_item &with_arena(std::uint32_t number) noexcept
    {
        arena = number;
        return *this;
    }

    /* items with one number are the same bytes; 0: the item is no alias */
    plan_item &with_alias_group(std::uint32_t number) noexcept
    {
        alias_group = number;
        return *this;
    }
};

/*
 * quire_plan_problem. Its arrays are a pointer and a count, or a container with data() and size()
 * such as std::vector. They must stay valid until the last call that takes the problem.
 */
struct plan_problem : quire_plan_problem {
    plan_problem(const quire_plan_item *data, std::size_t count) noexcept : quire_plan_problem()
    {
        detail::set_array(items, item_count, data, count);
    }

    template <class Items, class = detail::if_elements<Items, quire_plan_item>>
    explicit plan_problem(const Items &list) : plan_problem(list.data(), list.size())
    {
    }

    /* No arena: one without a capacity. */
    plan_problem &with_arenas(const quire_plan_arena *data, std::size_t count) noexcept
    {
        detail::set_array(arenas, arena_count, data, count);
        return *this;
    }

    template <class Arenas, class = detail::if_elements<Arenas, quire_plan_arena>>
    plan_problem &with_arenas(const Arenas &list)
    {
        return with_arenas(list.data(), list.size());
    }

    /* pairs of items that must not share a byte of one arena */
    plan_problem &with_separations(const quire_plan_separation *data, std::size_t count) noexcept
    {
        detail::set_array(separations, separation_count, data, count);
        return *this;
    }

    template <class Separations, class = detail::if_elements<Separations, quire_plan_separation>>
    plan_problem &with_separations(const Separations &list)
    {
        return with_separations(list.data(), list.size());
    }
};

/* quire_plan_options; a progress is an argument of quire::plan */
struct plan_options : quire_plan_options {
    plan_options() noexcept : quire_plan_options()
    {
    }

    /* quire_plan_options.step_limit */
    plan_options &with_step_limit(std::uint64_t steps) noexcept
    {
        step_limit = steps;
        return *this;
    }

    /* 0: none */
    plan_options &with_time_limit(std::uint64_t nanoseconds) noexcept
    {
        time_limit_ns = nanoseconds;
        return *this;
    }

    plan_options &with_seed(std::uint64_t number) noexcept
    {
        seed = number;
        return *this;
    }
};

/* The largest end of an item in each arena. */
using plan_peaks = std::vector<std::uint64_t>;

/*
 * Checks a plan of any origin: `count` places, one for each item. Returns the peak of each
 * arena, one if the problem names none. May throw std::bad_alloc. quire_plan_check
 */
inline result<plan_peaks> plan_check(const quire_plan_problem &problem,
                                     const quire_plan_place *places, std::size_t count)
{
    constexpr std::uint32_t most_arenas = 1024; /* quire_plan_check refuses more */
    if (count != problem.item_count)
        return failure::with_sentence(QUIRE_ERROR_INVALID_ARGUMENT,
                                      "the plan has not one place for each item");
    const std::uint32_t arenas = problem.arena_count ? problem.arena_count : 1;
    plan_peaks peaks(arenas <= most_arenas ? arenas : 0);
    const quire_result code =
        quire_plan_check(&problem, places, peaks.empty() ? nullptr : peaks.data(), nullptr);
    return detail::make_result(code, std::move(peaks));
}

template <class Places, class = detail::if_elements<Places, quire_plan_place>>
result<plan_peaks> plan_check(const quire_plan_problem &problem, const Places &places)
{
    return plan_check(problem, places.data(), places.size());
}

/* A plan, and facts about it. */
struct plan_result {
    std::vector<quire_plan_place> places; /* of each item */
    quire_plan_info info = {};

    /* plan_check of the places, with the problem that the plan is of */
    result<plan_peaks> check(const quire_plan_problem &problem) const
    {
        return plan_check(problem, places);
    }
};

/* Makes a plan. May throw std::bad_alloc. quire_plan */
inline result<plan_result> plan(const quire_plan_problem &problem,
                                const quire_plan_options &options = quire_plan_options())
{
    constexpr std::uint32_t most_items = UINT32_C(1) << 30; /* quire_plan refuses more */
    plan_result made;
    made.places.resize(problem.item_count <= most_items ? problem.item_count : 1);
    const quire_result code = quire_plan(&problem, &options, made.places.data(), &made.info);
    return detail::make_result(code, std::move(made));
}

/*
 * Makes a plan, and calls `progress(const quire_plan_info &)` from time to time with the best one
 * so far, in place of that of the options. `progress` returns nothing, or a bool: false ends the
 * work, and the plan is the best one so far. What `progress` throws ends the work, and plan()
 * throws it. `progress` must not make a plan itself. May throw std::bad_alloc. quire_plan
 */
template <class Progress>
result<plan_result> plan(const quire_plan_problem &problem, const quire_plan_options &options,
                         Progress &&progress)
{
    quire_plan_options watched = options;
    auto by_reference = [&progress](const quire_plan_info *best) { return progress(*best); };
    detail::callback<decltype(by_reference)> watcher(by_reference);
    watched.progress = watcher.template call<const quire_plan_info *>;
    watched.user = &watcher;
    result<plan_result> made = plan(problem, watched);
    watcher.rethrow();
    return made;
}

/* The same for items alone: a container with data() and size(), such as std::vector. */
template <class Items, class = detail::if_elements<Items, quire_plan_item>>
result<plan_result> plan(const Items &items,
                         const quire_plan_options &options = quire_plan_options())
{
    const plan_problem problem(items);
    return plan(problem, options);
}

template <class Items, class Progress, class = detail::if_elements<Items, quire_plan_item>>
result<plan_result> plan(const Items &items, const quire_plan_options &options, Progress &&progress)
{
    const plan_problem problem(items);
    return plan(problem, options, std::forward<Progress>(progress));
}

} // namespace quire

#endif
