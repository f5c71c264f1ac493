/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * windows.h - stands in for Microsoft's header of this name: the types that vulkan_win32.h names,
 * so that what the Vulkan backend has for Windows is compiled on other machines too.
 */
#ifndef QUIRE_TESTS_SUPPORT_WIN32_WINDOWS_H
#define QUIRE_TESTS_SUPPORT_WIN32_WINDOWS_H

typedef void *HANDLE, *HINSTANCE, *HWND, *HMONITOR;
typedef unsigned long DWORD;
typedef const unsigned short *LPCWSTR;
typedef struct SECURITY_ATTRIBUTES SECURITY_ATTRIBUTES;

#endif
