/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/callback.hpp - functions of C++ that functions of C call.
 *
 * Thread-safety: a callback belongs to the thread that makes the call.
 */
#ifndef QUIRE_HPP_CALLBACK_HPP
#define QUIRE_HPP_CALLBACK_HPP

#include <exception>
#include <type_traits>

namespace quire
{
namespace detail
{

/*
 * Lends a callable to one call of a function of C, which ends early if it gets false. An exception
 * that passed through frames of C would leave locked or counted what they hold. Here it ends the
 * call, and rethrow() throws it again once the function of C has returned.
 */
template <class Function> class callback
{
  public:
    explicit callback(Function &function) noexcept : function_(function)
    {
    }

    /* What the function of C gets, with the address of the callback as `user`. Runs the callable
       and returns its bool; true if it returns nothing, false if it throws. */
    template <class... Arguments> static bool call(void *user, Arguments... arguments) noexcept
    {
        callback &self = *static_cast<callback *>(user);
#if defined(__cpp_exceptions)
        try {
            return self.run(arguments...);
        } catch (...) {
            self.thrown_ = std::current_exception();
            return false;
        }
#else
        return self.run(arguments...);
#endif
    }

    /* Throws what the callable threw, if it did. */
    void rethrow() const
    {
#if defined(__cpp_exceptions)
        if (thrown_)
            std::rethrow_exception(thrown_);
#endif
    }

  private:
    template <class... Arguments> bool run(Arguments... arguments)
    {
        using returned = std::decay_t<decltype(function_(arguments...))>;
        static_assert(std::is_void<returned>::value || std::is_same<returned, bool>::value,
                      "the function must return bool or nothing");
        return run_as(std::is_void<returned>(), arguments...);
    }

    template <class... Arguments> bool run_as(std::true_type, Arguments... arguments)
    {
        function_(arguments...);
        return true;
    }

    template <class... Arguments> bool run_as(std::false_type, Arguments... arguments)
    {
        return function_(arguments...);
    }

    Function &function_;
#if defined(__cpp_exceptions)
    std::exception_ptr thrown_;
#endif
};

} // namespace detail
} // namespace quire

#endif
