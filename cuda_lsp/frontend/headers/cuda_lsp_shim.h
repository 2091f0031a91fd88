// CUDA's built-in words, declared for parsing only: no toolkit is needed and no code is generated from them.
// The extractor knows what the functions mean by name (frontend/vocabulary/library.py); here they only get types.
#ifndef CUDA_LSP_SHIM_H
#define CUDA_LSP_SHIM_H
#pragma clang system_header

// libcu++ is there only for who includes it: others may have a namespace of that name themselves (``own_names.py``).
#ifndef CUDA_LSP_LIBCUDACXX
#define CUDA_LSP_LIBCUDACXX cuda
#endif

#pragma clang force_cuda_host_device begin
#include "qualifiers.h"
#include "limits_and_types.h"
#include "vectors.h"
#include "execution.h"
#include "atomics.h"
#include "arithmetic.h"
#include "standard.h"
#include "half.h"
#include "fp8.h"
#include "textures.h"
#include "groups.h"
#include "libraries.h"
#include "values.h"
#include "runtime.h"
#include "host_words.h"
#include "more_standard.h"
#include "library_handles.h"
#pragma clang force_cuda_host_device end

// A pack of a hundred million is six gigabytes of clang's.
template <bool>
struct __cuda_lsp_sequence_of_at_most_16384_numbers;
template <>
struct __cuda_lsp_sequence_of_at_most_16384_numbers<true> {
  template <template <class T, T...> class S, class T, T N>
  using of = __make_integer_seq<S, T, N>;
};
template <template <class T, T...> class S, class T, T N>
using __cuda_lsp_integer_seq = typename __cuda_lsp_sequence_of_at_most_16384_numbers<(N <= 16384)>::template of<S, T, N>;
#define __make_integer_seq __cuda_lsp_integer_seq
#endif
