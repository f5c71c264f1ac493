/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/result.hpp - what functions of quire.hpp return: a value or an error.
 *
 * Thread-safety: objects of one thread; like standard types they need a lock of the caller if
 * several threads use one.
 */
#ifndef QUIRE_HPP_RESULT_HPP
#define QUIRE_HPP_RESULT_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "quire/quire.h"

/* A result that a program must not ignore. C++14 has no word for it. */
#if __cplusplus >= 201703L
#include <optional>
#define QUIRE_NODISCARD [[nodiscard]]
#else
#define QUIRE_NODISCARD
#endif

namespace quire
{

/*
 * The error of a failed call: quire's code, the backend's own code and the sentence, which is
 * copied, so that later failures of the thread do not change it.
 */
class failure
{
  public:
    /* No failure: code() is QUIRE_SUCCESS. */
    failure() noexcept = default;

    /* The failure that quire reported last in this thread, with this code. */
    explicit failure(quire_result code) noexcept
        : code_(code), native_code_(quire_last_native_code())
    {
        keep(quire_last_error());
    }

    /* Of a call of an empty owner, with the name of its class. */
    failure(quire_result code, const char *owner) noexcept : code_(code)
    {
        static constexpr char text[] = "the %s is empty: it owns nothing";
        const std::size_t size = sizeof text + std::strlen(owner);
        text_.reset(new (std::nothrow) char[size]);
        if (text_)
            std::snprintf(text_.get(), size, text, owner);
    }

    /* Of a call that quire.hpp refuses itself, with a sentence. */
    static failure with_sentence(quire_result code, const char *sentence) noexcept
    {
        failure made;
        made.code_ = code;
        made.keep(sentence);
        return made;
    }

    quire_result code() const noexcept
    {
        return code_;
    }

    /* errno, VkResult, CUresult, ...; 0 if the failure did not come from a backend. */
    std::int64_t native_code() const noexcept
    {
        return native_code_;
    }

    /* The sentence with the numbers of the case, valid as long as the failure; the general sentence
       of the code if there was no host memory for it. */
    const char *message() const noexcept
    {
        return text_ ? text_.get() : quire_result_sentence(code_);
    }

  private:
    /* Copies a sentence, if there is host memory for it. */
    void keep(const char *sentence) noexcept
    {
        const std::size_t size = std::strlen(sentence) + 1;
        text_.reset(new (std::nothrow) char[size]);
        if (text_)
            std::memcpy(text_.get(), sentence, size);
    }

    quire_result code_ = QUIRE_SUCCESS;
    std::int64_t native_code_ = 0;
    std::unique_ptr<char[]> text_;
};

/* What value() of a failed result throws; what() is the sentence. */
class error : public std::runtime_error
{
  public:
    explicit error(const failure &why)
        : std::runtime_error(why.message()), code_(why.code()), native_code_(why.native_code())
    {
    }

    quire_result code() const noexcept
    {
        return code_;
    }

    /* As failure::native_code. */
    std::int64_t native_code() const noexcept
    {
        return native_code_;
    }

  private:
    quire_result code_;
    std::int64_t native_code_;
};

namespace detail
{

/* Throws an error; without exceptions prints the sentence and aborts. */
template <class Error> [[noreturn]] void raise(const char *message, const Error &error)
{
#if defined(__cpp_exceptions)
    (void)message;
    throw error;
#else
    (void)error;
    std::fprintf(stderr, "quire: %s\n", message);
    std::abort();
#endif
}

/* What both kinds of results say about a failure. */
class outcome
{
  public:
    /* Moves the failure out, to return it: `return std::move(made).error();` */
    failure error() &&
    {
        return std::move(failure_);
    }

    /* QUIRE_SUCCESS, 0 and the general sentence of success if nothing failed. */
    quire_result code() const noexcept
    {
        return failure_.code();
    }

    std::int64_t native_code() const noexcept
    {
        return failure_.native_code();
    }

    const char *message() const noexcept
    {
        return failure_.message();
    }

  protected:
    outcome() noexcept = default;

    explicit outcome(failure &&why) noexcept : failure_(std::move(why))
    {
    }

    /* Throws the error, or ends the program. */
    [[noreturn]] void raise() const
    {
        detail::raise(failure_.message(), quire::error(failure_));
    }

    failure failure_;
};

#if __cplusplus >= 201703L
template <class T> using optional = std::optional<T>;
#else
/* What result needs of it, for the types that C++14 gets: each has a value without arguments. */
template <class T> class optional
{
  public:
    optional() = default;

    optional(T &&value) : value_(std::move(value)), has_value_(true)
    {
    }

    bool has_value() const noexcept
    {
        return has_value_;
    }

    T &operator*() noexcept
    {
        return value_;
    }

    const T &operator*() const noexcept
    {
        return value_;
    }

  private:
    T value_ = {};
    bool has_value_ = false;
};
#endif

} // namespace detail

/*
 * A value, or the failure that there is instead. True if it has the value. value(), * and -> of a
 * failed result throw quire::error; without exceptions they print the sentence and abort.
 */
template <class T> class QUIRE_NODISCARD result : public detail::outcome
{
  public:
    result(T &&value) : value_(std::move(value))
    {
    }

    result(failure &&why) noexcept : outcome(std::move(why))
    {
    }

    explicit operator bool() const noexcept
    {
        return value_.has_value();
    }

    T &value() &
    {
        check();
        return *value_;
    }

    const T &value() const &
    {
        check();
        return *value_;
    }

    /* Moves the value out: `auto memory = quire::memory::create(device).value();` */
    T value() &&
    {
        check();
        return std::move(*value_);
    }

    T &operator*() &
    {
        return value();
    }

    const T &operator*() const &
    {
        return value();
    }

    T operator*() &&
    {
        return std::move(*this).value();
    }

    T *operator->()
    {
        return &value();
    }

    const T *operator->() const
    {
        return &value();
    }

  private:
    void check() const
    {
        if (!*this)
            raise();
    }

    detail::optional<T> value_;
};

/* A call without a value: true if it succeeded. value() checks it as result<T>::value() does. */
template <> class QUIRE_NODISCARD result<void> : public detail::outcome
{
  public:
    result() noexcept = default;

    result(failure &&why) noexcept : outcome(std::move(why))
    {
    }

    /* The result of a function of C that this thread has just called. */
    static result of(quire_result code) noexcept
    {
        return code == QUIRE_SUCCESS ? result() : result(failure(code));
    }

    explicit operator bool() const noexcept
    {
        return failure_.code() == QUIRE_SUCCESS;
    }

    void value() const
    {
        if (!*this)
            raise();
    }
};

using status = result<void>;

namespace detail
{

/* The result of a function of C that wrote `value` on success. */
template <class T> result<T> make_result(quire_result code, T &&value)
{
    if (code != QUIRE_SUCCESS)
        return failure(code);
    return std::move(value);
}

} // namespace detail
} // namespace quire

#endif
