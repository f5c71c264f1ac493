/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * no_git.c - replaces three functions of libgit2 in the unit test programs. Criterion starts
 * libgit2 in the process of each test, and uses it only to show the differences of texts in
 * cr_assert(eq(str, ...)). No unit test uses that, and the start would take a third of the time of
 * a short test: it reads the certificates of the machine, among others.
 */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void)
{
    return 1;
}

int git_libgit2_shutdown(void)
{
    return 0;
}

/* Reports no difference. */
int git_diff_buffers(void)
{
    return 0;
}
