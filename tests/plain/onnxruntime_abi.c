/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * onnxruntime_abi.c - src/adapters/onnxruntime/abi.h against the header of ONNX Runtime: sizes and
 * places of members, numbers and parameters of functions, constants.
 *
 * It compares what the installed release has, and reports newer entries that it lacks.
 */
#include "tests/support/plain.h"

#include <onnxruntime_c_api.h>
#include <stddef.h>
#include <stdio.h>

/* both declare structs of these names */
#define OrtAllocator own_allocator
#define OrtApiBase own_api_base
#include "src/adapters/onnxruntime/abi.h"
#undef OrtAllocator
#undef OrtApiBase

static unsigned newer;

#define CHECK_MEMBER(own_type, own, type, member)                                                  \
    CHECK_EQ(offsetof(own_type, own), offsetof(type, member))

static void structs_have_their_members_in_the_same_places(void)
{
    CHECK_MEMBER(ort_allocator, version, OrtAllocator, version);
    CHECK_MEMBER(ort_allocator, alloc, OrtAllocator, Alloc);
    CHECK_MEMBER(ort_allocator, free, OrtAllocator, Free);
    CHECK_MEMBER(ort_allocator, info, OrtAllocator, Info);
    CHECK_MEMBER(ort_allocator, reserve, OrtAllocator, Reserve);
#if ORT_API_VERSION >= 23
    CHECK_MEMBER(ort_allocator, get_stats, OrtAllocator, GetStats);
    CHECK_MEMBER(ort_allocator, alloc_on_stream, OrtAllocator, AllocOnStream);
#else
    CHECK_EQ(offsetof(ort_allocator, get_stats), sizeof(OrtAllocator));
    newer += 2;
#endif
#if ORT_API_VERSION >= 25
    CHECK_MEMBER(ort_allocator, shrink, OrtAllocator, Shrink);
#else
    newer++;
#endif
    CHECK_MEMBER(ort_api_base, get_api, OrtApiBase, GetApi);
    CHECK_MEMBER(ort_api_base, get_version_string, OrtApiBase, GetVersionString);
}

/* The numbers as constants, by the names of the adapter. */
#define NUMBER(name, number, result, parameters) number_of_##name = number,
enum { ORT_FUNCTIONS(NUMBER) ORT_PAIR_FUNCTIONS(NUMBER) };

#define CHECK_FUNCTION(name, member)                                                               \
    CHECK_EQ(number_of_##name, offsetof(OrtApi, member) / sizeof(ort_function))

static void functions_have_the_same_numbers(void)
{
    CHECK_FUNCTION(create_status, CreateStatus);
    CHECK_FUNCTION(get_error_message, GetErrorMessage);
    CHECK_FUNCTION(create_cpu_memory_info, CreateCpuMemoryInfo);
    CHECK_FUNCTION(release_status, ReleaseStatus);
    CHECK_FUNCTION(release_memory_info, ReleaseMemoryInfo);
#if ORT_API_VERSION >= 22
    CHECK_FUNCTION(create_pairs, CreateKeyValuePairs);
    CHECK_FUNCTION(add_pair, AddKeyValuePair);
#else
    newer += 2;
#endif
}

static void constants_have_the_same_values(void)
{
    CHECK_EQ(ORT_CODE_FAIL, ORT_FAIL);
    CHECK_EQ(ORT_DEVICE_ALLOCATOR, OrtDeviceAllocator);
    CHECK_EQ(ORT_MEMORY_DEFAULT, OrtMemTypeDefault);
    CHECK_EQ(sizeof(OrtAllocatorType), sizeof(int));
    CHECK_EQ(sizeof(OrtMemType), sizeof(int));
    CHECK_EQ(sizeof(OrtErrorCode), sizeof(int));
}

int main(void)
{
    plain_case("structs have their members in the same places",
               structs_have_their_members_in_the_same_places);
    plain_case("functions have the same numbers", functions_have_the_same_numbers);
    plain_case("constants have the same values", constants_have_the_same_values);
    printf("# API version %d of ONNX Runtime lacks %u newer entries\n", ORT_API_VERSION, newer);
    return plain_end();
}
