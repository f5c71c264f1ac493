/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * thread_sanitizer.h - whether the build has the thread sanitizer, which follows no threads in
 * forked children.
 */
#ifndef QUIRE_TESTS_SUPPORT_THREAD_SANITIZER_H
#define QUIRE_TESTS_SUPPORT_THREAD_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_THREAD_SANITIZER 1
#endif
#endif
#ifndef HAS_THREAD_SANITIZER
#define HAS_THREAD_SANITIZER 0
#endif

#endif
