// The element tables of all compiled ISAs, found by the name of the kernel table.
#include <array>
#include <string_view>
#include <utility>

#include "backends/cpu/kernels/elements.hpp"
#include "backends/cpu/kernels/targets.hpp"
#include "hwy/targets.h"

namespace cyb::cpu {

#define CYB_FILL_ELEMENTS(ns)          \
  namespace ns {                       \
  void fill_elements(ElementKernels&); \
  }
#if HWY_TARGETS & HWY_STATIC_TARGET & (HWY_SCALAR | HWY_EMU128)
#define CYB_HAVE_PLAIN 1
#if HWY_STATIC_TARGET == HWY_SCALAR
CYB_FILL_ELEMENTS(N_SCALAR)
#define CYB_PLAIN_NS N_SCALAR
#else
CYB_FILL_ELEMENTS(N_EMU128)
#define CYB_PLAIN_NS N_EMU128
#endif
#endif
#if HWY_TARGETS & HWY_SSE4
CYB_FILL_ELEMENTS(N_SSE4)
#endif
#if HWY_TARGETS & HWY_AVX2
CYB_FILL_ELEMENTS(N_AVX2)
#endif
#if HWY_TARGETS & HWY_AVX3
CYB_FILL_ELEMENTS(N_AVX3)
#endif
#if HWY_TARGETS & HWY_AVX3_DL
CYB_FILL_ELEMENTS(N_AVX3_DL)
#endif

namespace {

struct Entry {
  std::string_view isa;
  void (*fill)(ElementKernels&);
};

constexpr std::array kEntries = {
#ifdef CYB_HAVE_PLAIN
    Entry{"scalar", CYB_PLAIN_NS::fill_elements},
#endif
#if HWY_TARGETS & HWY_SSE4
    Entry{"sse4", N_SSE4::fill_elements},
#endif
#if HWY_TARGETS & HWY_AVX2
    Entry{"avx2", N_AVX2::fill_elements},
#endif
#if HWY_TARGETS & HWY_AVX3
    Entry{"avx3", N_AVX3::fill_elements},
#endif
#if HWY_TARGETS & HWY_AVX3_DL
    Entry{"avx3_dl", N_AVX3_DL::fill_elements},
#endif
};

/// The fill functions are code of their ISA too: only that of a table in use is called.
ElementKernels filled(const Entry& entry) {
  ElementKernels table{};
  entry.fill(table);
  return table;
}

template <std::size_t I>
const ElementKernels& table_of() noexcept {
  static const ElementKernels table = filled(kEntries[I]);
  return table;
}

template <std::size_t... I>
const ElementKernels& find(std::string_view isa, std::index_sequence<I...>) noexcept {
  const ElementKernels* found = nullptr;
  (void)((kEntries[I].isa == isa && (found = &table_of<I>(), true)) || ...);
  return *found;  // kernel tables have the same names
}

}  // namespace

const ElementKernels& element_kernels(const KernelTable& table) noexcept {
  return find(table.isa, std::make_index_sequence<kEntries.size()>());
}

}  // namespace cyb::cpu
