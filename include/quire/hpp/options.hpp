/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/options.hpp - options whose setters can be chained, where C writes &(struct){...}:
 *
 *     quire::allocation_options(4096).with_alignment(256).with_name("scratch")
 *
 * Each is the struct of C with all fields 0, so that a field can also be assigned by its name.
 * Functions take the structs of C, so that C++20 may write {.size = 4096} instead. Strings and
 * pointers must stay valid until the call that takes the options.
 */
#ifndef QUIRE_HPP_OPTIONS_HPP
#define QUIRE_HPP_OPTIONS_HPP

#include "quire/hpp/stream.hpp"

namespace quire
{

/* quire_memory_options */
struct memory_options : quire_memory_options {
    memory_options() noexcept : quire_memory_options()
    {
    }

    memory_options &with_name(const char *text) noexcept
    {
        name = text;
        return *this;
    }

    /* QUIRE_INTENT_ bits */
    memory_options &with_intent(quire_intent bits) noexcept
    {
        kind.intent = bits;
        return *this;
    }

    /* QUIRE_DEVICE_LOCAL and so on, which the kind must have */
    memory_options &with_flags(quire_memory_flags bits) noexcept
    {
        kind.required = bits;
        return *this;
    }

    /* bit i allows kind i; 0: all kinds */
    memory_options &with_kind_mask(std::uint32_t mask) noexcept
    {
        kind.mask = mask;
        return *this;
    }

    memory_options &with_elastic(bool on = true) noexcept
    {
        elastic = on;
        return *this;
    }

    /* bytes of addresses of an elastic memory; 0: four times the heap */
    memory_options &with_address_space(std::uint64_t bytes) noexcept
    {
        address_space = bytes;
        return *this;
    }

    memory_options &with_find_by_address(bool on = true) noexcept
    {
        find_by_address = on;
        return *this;
    }

    /* fit.granule, in bytes: what the smallest allocation takes */
    memory_options &with_granule(std::uint64_t bytes) noexcept
    {
        fit.granule = bytes;
        return *this;
    }

    memory_options &with_map_on_demand(bool on = true) noexcept
    {
        map_on_demand = on;
        return *this;
    }

    memory_options &with_within_budget(bool on = true) noexcept
    {
        within_budget = on;
        return *this;
    }

    /* all raw allocations and buffers, as allocation_options::with_movable */
    memory_options &with_movable(bool on = true) noexcept
    {
        movable = on;
        return *this;
    }

    memory_options &with_fit(quire_fit algorithm) noexcept
    {
        fit.algorithm = algorithm;
        return *this;
    }

    /* at most 64; 0: as many as threads need */
    memory_options &with_shards(std::uint32_t count) noexcept
    {
        shards = count;
        return *this;
    }

    /* bytes of a page; 0: pages that follow use */
    memory_options &with_page_size(std::uint64_t bytes) noexcept
    {
        pages.page_size = bytes;
        return *this;
    }

    /* maximum bytes of pages, or QUIRE_PERCENT_OF_HEAP; 0: no limit */
    memory_options &with_limit(std::uint64_t bytes) noexcept
    {
        limit = bytes;
        return *this;
    }
};

namespace detail
{

/* The setters that options of allocations, buffers and images share. */
template <class Self, class Base> struct range_options : Base {
    range_options() noexcept : Base()
    {
    }

    Self &with_name(const char *text) noexcept
    {
        this->name = text;
        return self();
    }

    Self &with_host_write(bool on = true) noexcept
    {
        this->host_write = on;
        return self();
    }

    Self &with_host_read(bool on = true) noexcept
    {
        this->host_read = on;
        return self();
    }

    Self &with_zero(bool on = true) noexcept
    {
        this->zero = on;
        return self();
    }

    Self &with_dedicated(bool on = true) noexcept
    {
        this->dedicated = on;
        return self();
    }

    Self &with_mapped(bool on = true) noexcept
    {
        this->mapped = on;
        return self();
    }

    Self &with_existing_pages(bool on = true) noexcept
    {
        this->existing_pages = on;
        return self();
    }

    Self &with_within_budget(bool on = true) noexcept
    {
        this->within_budget = on;
        return self();
    }

    Self &with_user_data(std::uint64_t number) noexcept
    {
        this->user_data = number;
        return self();
    }

    /* The first work on the range is submitted to this stream: quire_allocation_options.stream. */
    Self &with_stream(const quire::stream &order) noexcept
    {
        this->stream = order.handle();
        return self();
    }

  protected:
    Self &self() noexcept
    {
        return static_cast<Self &>(*this);
    }
};

} // namespace detail

/* quire_allocation_options */
struct allocation_options : detail::range_options<allocation_options, quire_allocation_options> {
    /* `bytes` must be above 0 when the options are used. */
    explicit allocation_options(std::uint64_t bytes = 0) noexcept
    {
        size = bytes;
    }

    /* of the offset in the page, any number; 0: no requirement */
    allocation_options &with_offset_alignment(std::uint64_t bytes) noexcept
    {
        offset_alignment = bytes;
        return *this;
    }

    /* of the native address, a power of two; 0: 1 */
    allocation_options &with_alignment(std::uint64_t bytes) noexcept
    {
        alignment = bytes;
        return *this;
    }

    /* addresses alone, in an elastic memory; allocation::back gives memory to parts of them */
    allocation_options &with_lazy(bool on = true) noexcept
    {
        lazy = on;
        return *this;
    }

    /* a compaction may move it to another page */
    allocation_options &with_movable(bool on = true) noexcept
    {
        movable = on;
        return *this;
    }

    /* at the upper end of the page of a linear memory */
    allocation_options &with_upper(bool on = true) noexcept
    {
        upper = on;
        return *this;
    }
};

/* quire_buffer_options */
struct buffer_options : detail::range_options<buffer_options, quire_buffer_options> {
    /* `bytes` must be above 0 when the options are used. */
    explicit buffer_options(std::uint64_t bytes = 0) noexcept
    {
        size = bytes;
    }

    /* QUIRE_USAGE_ bits; 0: storage and both transfers */
    buffer_options &with_usage(quire_usage bits) noexcept
    {
        usage = bits;
        return *this;
    }

    /* minimum, a power of two; 0: what the backend requires */
    buffer_options &with_alignment(std::uint64_t bytes) noexcept
    {
        alignment = bytes;
        return *this;
    }

    /* a compaction may move it to another page, with a new native object */
    buffer_options &with_movable(bool on = true) noexcept
    {
        movable = on;
        return *this;
    }
};

/* quire_image_options */
struct image_options : detail::range_options<image_options, quire_image_options> {
    /* Texels; `x` must be above 0 when the options are used. 0 of the others: 1. */
    explicit image_options(std::uint32_t x = 0, std::uint32_t y = 0, std::uint32_t z = 0) noexcept
    {
        width = x;
        height = y;
        depth = z;
    }

    /* 1 to 4 channels; 0: 1 */
    image_options &with_channels(std::uint32_t count, quire_channel_type type) noexcept
    {
        channel_count = count;
        channel_type = type;
        return *this;
    }

    image_options &with_tiling(quire_tiling order) noexcept
    {
        tiling = order;
        return *this;
    }

    /* QUIRE_USAGE_ bits; 0: storage, sampled and both transfers */
    image_options &with_usage(quire_usage bits) noexcept
    {
        usage = bits;
        return *this;
    }
};

/* quire_compact_limits */
struct compact_limits : quire_compact_limits {
    compact_limits() noexcept : quire_compact_limits()
    {
    }

    compact_limits &with_moves(std::uint64_t count) noexcept
    {
        moves = count;
        return *this;
    }

    /* of contents; a larger allocation moves alone */
    compact_limits &with_bytes(std::uint64_t count) noexcept
    {
        bytes = count;
        return *this;
    }

    /* pages and allocations that are looked at */
    compact_limits &with_records(std::uint64_t count) noexcept
    {
        records = count;
        return *this;
    }

    /* a goal: bytes of a free range that is to exist in a page */
    compact_limits &with_largest_free(std::uint64_t bytes_of_range) noexcept
    {
        largest_free = bytes_of_range;
        return *this;
    }
};

} // namespace quire

#endif
