// The tables of all compiled ISAs and the choice among them by what this machine has.
#include "backends/cpu/kernels/table.hpp"

#include <array>

#include "backends/cpu/kernels/targets.hpp"
#include "hwy/targets.h"

namespace cyb::cpu {

// Declarations of the per-target functions; every target of HWY_TARGETS has them.
#if HWY_TARGETS & HWY_STATIC_TARGET & (HWY_SCALAR | HWY_EMU128)
#define CYB_HAVE_PLAIN 1
#if HWY_STATIC_TARGET == HWY_SCALAR
CYB_FILLS(N_SCALAR)
#define CYB_PLAIN_NS N_SCALAR
#else
CYB_FILLS(N_EMU128)
#define CYB_PLAIN_NS N_EMU128
#endif
#endif
#if HWY_TARGETS & HWY_SSE4
CYB_FILLS(N_SSE4)
#endif
#if HWY_TARGETS & HWY_AVX2
CYB_FILLS(N_AVX2)
#endif
#if HWY_TARGETS & HWY_AVX3
CYB_FILLS(N_AVX3)
#endif
#if HWY_TARGETS & HWY_AVX3_DL
CYB_FILLS(N_AVX3_DL)
#endif

namespace {

struct Entry {
  const char* name;
  std::int64_t target;  // 0: runs everywhere
  void (*fill)(KernelTable&);
};

// The fill functions are code of their ISA too: called only where it runs.
#define CYB_ENTRY(name, target, ns)    \
  Entry {                              \
    name, target, [](KernelTable& t) { \
      ns::fill_dot32(t);               \
      ns::fill_dotk(t);                \
      ns::fill_dequant(t);             \
      ns::fill_rows(t);                \
      ns::fill_attend(t);              \
      ns::fill_tile(t);                \
      ns::fill_direct(t);              \
      ns::fill_winograd(t);            \
      ns::fill_elements(t);            \
      ns::fill_integers(t);            \
    }                                  \
  }

/// Worst first.
constexpr std::array kEntries = {
#ifdef CYB_HAVE_PLAIN
    CYB_ENTRY("scalar", 0, CYB_PLAIN_NS),
#endif
#if HWY_TARGETS & HWY_SSE4
    CYB_ENTRY("sse4", HWY_SSE4, N_SSE4),
#endif
#if HWY_TARGETS & HWY_AVX2
    CYB_ENTRY("avx2", HWY_AVX2, N_AVX2),
#endif
#if HWY_TARGETS & HWY_AVX3
    CYB_ENTRY("avx3", HWY_AVX3, N_AVX3),
#endif
#if HWY_TARGETS & HWY_AVX3_DL
    CYB_ENTRY("avx3_dl", HWY_AVX3_DL, N_AVX3_DL),
#endif
};

struct Tables {
  std::array<KernelTable, kEntries.size()> table{};
  std::array<bool, kEntries.size()> here{};
};

const Tables& tables() noexcept {
  static const Tables all = [] {
    Tables t;
    for (std::size_t i = 0; i < kEntries.size(); ++i) {
      t.here[i] = kEntries[i].target == 0 || (hwy::SupportedTargets() & kEntries[i].target) != 0;
      if (!t.here[i]) continue;
      t.table[i].isa = kEntries[i].name;
      kEntries[i].fill(t.table[i]);
    }
    return t;
  }();
  return all;
}

}  // namespace

const KernelTable* find_kernels(std::string_view isa) noexcept {
  const Tables& all = tables();
  const KernelTable* best = nullptr;
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (all.here[i] && (isa.empty() || isa == kEntries[i].name)) best = &all.table[i];
  }
  return best;
}

std::size_t available_isas(const char** names, std::size_t capacity) noexcept {
  const Tables& all = tables();
  std::size_t n = 0;
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (all.here[i] && n < capacity) names[n++] = kEntries[i].name;
  }
  return n;
}

}  // namespace cyb::cpu
