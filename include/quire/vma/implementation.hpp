/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/implementation.hpp - what C++ programs take from VMA's implementation, where they
 * define VMA_IMPLEMENTATION: the standard headers, and the class behind an allocation. Part of
 * quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_IMPLEMENTATION_HPP
#define QUIRE_VMA_IMPLEMENTATION_HPP

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>
#if __cplusplus >= 201703L
#include <shared_mutex>
#endif
#if __cplusplus >= 202002L
#include <bit>
#endif

#include "quire/vma/allocation.h"

/*
 * A handle is a number, and no object of this class exists. The class is empty, has the alignment
 * 1, and its functions use the value of `this` only, so that no compiler or sanitizer finds an
 * access. They are templates: VMA, in another file of the program, has functions of the same names.
 */
struct VmaAllocation_T {
    template <class = void> VkDeviceMemory GetMemory() const
    {
        return GetInfo().deviceMemory;
    }
    template <class = void> VkDeviceSize GetOffset() const
    {
        return GetInfo().offset;
    }
    template <class = void> VkDeviceSize GetSize() const
    {
        return GetInfo().size;
    }
    template <class = void> void *GetMappedData() const
    {
        return GetInfo().pMappedData;
    }

  private:
    template <class = void> VmaAllocationInfo GetInfo() const
    {
        VmaAllocationInfo info;
        quire_vma_get_info_of_handle(const_cast<VmaAllocation>(this), &info);
        return info;
    }
};

#endif
