// One source, two instruction sets: a function marked RANKSCOPE_CLONES is compiled for FMA (which implies
// 256-bit AVX) and for the baseline, and the loader picks. Elsewhere the mark says nothing and the baseline
// is all there is; so it is under the thread sanitizer, which cannot watch a loader that calls functions.
#pragma once

#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define RANKSCOPE_CLONES __attribute__((target_clones("fma", "default")))
#else
#define RANKSCOPE_CLONES
#endif
