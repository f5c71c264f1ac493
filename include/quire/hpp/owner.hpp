/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/owner.hpp - what all owners have in common: one handle, and a count of what keeps its
 * object alive.
 *
 * Thread-safety: owners as their headers say; keepers of one object may be copied and dropped by
 * any threads.
 */
#ifndef QUIRE_HPP_OWNER_HPP
#define QUIRE_HPP_OWNER_HPP

#include <atomic>
#include <string>

#include "quire/hpp/callback.hpp"
#include "quire/hpp/result.hpp"

namespace quire
{
namespace detail
{

/*
 * Keeps an object of C alive. The owner of the object has a keeper, and so has everything that lies
 * in it. The last one that is dropped destroys the object, and then drops the keeper of the object
 * in which this one lies: a memory after its last buffer, a device after its last memory.
 */
class keeper
{
  public:
    /* Keeps nothing. */
    keeper() noexcept = default;

    /* For an object that hold() names. `parent` is dropped after it. May throw std::bad_alloc. */
    keeper(void (*destroy)(void *), const keeper &parent);

    keeper(const keeper &other) noexcept;

    keeper(keeper &&other) noexcept : record_(std::exchange(other.record_, nullptr))
    {
    }

    keeper &operator=(keeper other) noexcept
    {
        std::swap(record_, other.record_);
        return *this;
    }

    ~keeper();

    /* The object to destroy in the end; null: none. */
    void hold(void *object) noexcept;

  private:
    struct record;
    record *record_ = nullptr;
};

struct keeper::record {
    std::atomic<std::size_t> keepers{1};
    void (*destroy)(void *);
    void *object;
    keeper parent;
};

inline keeper::keeper(void (*destroy)(void *), const keeper &parent)
    : record_(new record{{1}, destroy, nullptr, parent})
{
}

inline keeper::keeper(const keeper &other) noexcept : record_(other.record_)
{
    if (record_)
        record_->keepers.fetch_add(1, std::memory_order_relaxed);
}

inline keeper::~keeper()
{
    if (!record_ || record_->keepers.fetch_sub(1, std::memory_order_acq_rel) > 1)
        return;
    if (record_->object)
        record_->destroy(record_->object);
    delete record_;
}

inline void keeper::hold(void *object) noexcept
{
    if (record_)
        record_->object = object;
}

/* The failure of a call; of a function of an empty owner it names the owner. */
inline failure failure_of(bool is_empty, const char *owner, quire_result code)
{
    return is_empty ? failure(code, owner) : failure(code);
}

/*
 * Owns one handle. Traits has the type `handle`, the function `destroy`, which is called once, and
 * `name`, that of the owner in errors.
 */
template <class Traits> class owner
{
  public:
    using handle_type = typename Traits::handle;

    owner() noexcept = default;

    owner(owner &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), keeper_(std::move(other.keeper_))
    {
    }

    owner &operator=(owner &&other) noexcept
    {
        owner old(std::move(other)); /* then swapped, and dropped at the end */
        std::swap(handle_, old.handle_);
        std::swap(keeper_, old.keeper_);
        return *this;
    }

    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

    /* The handle, which stays owned; null if the owner is empty. */
    handle_type *handle() const noexcept
    {
        return handle_;
    }

    /* Gives the handle up to the caller, who destroys it, and leaves the owner empty. */
    QUIRE_NODISCARD handle_type *release() noexcept
    {
        keeper_.hold(nullptr);
        keeper_ = keeper();
        return std::exchange(handle_, nullptr);
    }

  protected:
    friend struct access;

    /* A keeper for an object that is to be made in that of `parent`. */
    static keeper prepare(const keeper &parent)
    {
        return keeper([](void *object) { Traits::destroy(static_cast<handle_type *>(object)); },
                      parent);
    }

    owner(handle_type *handle, keeper &&prepared) noexcept
        : handle_(handle), keeper_(std::move(prepared))
    {
        keeper_.hold(handle);
    }

    /* The result of a function of C that got the handle. */
    status checked(quire_result code) const
    {
        if (code == QUIRE_SUCCESS)
            return status();
        return failure_of(!handle_, Traits::name, code);
    }

    template <class T> result<T> checked(quire_result code, T &&value) const
    {
        if (code == QUIRE_SUCCESS)
            return std::move(value);
        return failure_of(!handle_, Traits::name, code);
    }

    /* What a function of C writes about the object. May throw std::bad_alloc. */
    result<std::string> written(quire_result (*write)(const handle_type *, quire_sink,
                                                      void *)) const
    {
        std::string text;
        auto append = [&text](const char *piece, std::size_t size) { text.append(piece, size); };
        callback<decltype(append)> sink(append);
        const quire_result code =
            write(handle_, sink.template call<const char *, std::size_t>, &sink);
        sink.rethrow();
        return checked(code, std::move(text));
    }

    /* After a function of C that destroys the object, and then sets handle_ to null. */
    status destroyed(quire_result code)
    {
        status result = checked(code);
        if (result)
            (void)release();
        return result;
    }

    handle_type *handle_ = nullptr;
    keeper keeper_;
};

/* What an object that lies in that of an owner needs of it. */
struct access {
    template <class Traits> static const keeper &keeper_of(const owner<Traits> &of) noexcept
    {
        return of.keeper_;
    }

    /* The failure of a call that got an empty owner. */
    template <class Traits> static failure empty(const owner<Traits> &) noexcept
    {
        return failure(QUIRE_ERROR_INVALID_ARGUMENT, Traits::name);
    }

    template <class T, class Traits>
    static result<T> checked(const owner<Traits> &of, quire_result code, T &&value)
    {
        return of.checked(code, std::move(value));
    }

    /* The owner of what a function of C made in `memory`, which is `home` or belongs to it. */
    template <class Owned, class Traits>
    static result<Owned> place(const owner<Traits> &home, quire_result code, quire_memory *memory,
                               quire_allocation made)
    {
        return checked(home, code, Owned(keeper_of(home), memory, made));
    }
};

} // namespace detail
} // namespace quire

#endif
