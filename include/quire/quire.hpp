/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/quire.hpp - quire for C++14 and later: owners that free what they hold, results that carry
 * the error, options with setters, and from C++17 on memory resources. It includes quire/quire.h
 * and nothing of a graphics or compute API. Include this header, not its parts in quire/hpp.
 *
 *     auto device = quire::device::open(quire_host_open).value();           // quire/host.h
 *     auto memory = quire::memory::create(device).value();
 *     auto weights = quire::buffer::create(memory, quire::buffer_options(1024)).value();
 *
 * Owners (device, memory, stream, allocation, buffer, image, mapping, stats_scope, compaction) can
 * be moved and not copied. An owner that was moved from, or made without arguments, is empty:
 * operator bool is false, its destructor does nothing, and its functions return INVALID_ARGUMENT. A
 * destructor cannot report an error; `destroy` and `free` return it. handle() lends the handle to
 * functions of C, release() gives it up, adopt() takes one over.
 *
 * Owners may be destroyed and assigned in any order. A memory lives as long as its owner or an
 * owner of something in it, and a device as long as its owner or an owner of something on it. An
 * allocation whose mapping lives is not freed: it stays until its memory is destroyed. This holds
 * for objects that owners made. An owner that adopted one needs the memory or the device to outlive
 * it.
 *
 * Every function that can fail returns a quire::result (hpp/result.hpp). Its value() throws
 * quire::error, or ends the program with the sentence on stderr where exceptions are disabled.
 * Nothing else throws, except what the comment of a function names. Compile all files of a program
 * that include this header either with exceptions or without, and as one version of C++.
 *
 * Sizes, offsets and alignments are bytes. The meaning of each option, the errors of each function
 * and the thread-safety are those of the function of C that the comment names.
 */
#ifndef QUIRE_QUIRE_HPP
#define QUIRE_QUIRE_HPP

/* clang-format off: in the order in which to read them */
#include "quire/hpp/result.hpp"     /* results and errors */
#include "quire/hpp/callback.hpp"   /* functions of C++ that functions of C call */
#include "quire/hpp/owner.hpp"      /* what all owners have in common */
#include "quire/hpp/device.hpp"     /* devices */
#include "quire/hpp/stream.hpp"     /* streams and points */
#include "quire/hpp/options.hpp"    /* options with setters */
#include "quire/hpp/memory.hpp"     /* memories, stats scopes, compactions */
#include "quire/hpp/mapping.hpp"    /* mappings */
#include "quire/hpp/allocation.hpp" /* allocations, buffers, images */
#include "quire/hpp/plan.hpp"       /* plans: offsets for ranges whose lifetimes are known */
#if __cplusplus >= 201703L
#include "quire/hpp/memory_resource.hpp" /* std::pmr::memory_resource */
#include "quire/hpp/device_resource.hpp" /* the memory resource of RMM and CCCL */
#endif
/* clang-format on */

#endif
