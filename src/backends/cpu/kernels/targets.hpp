// Which ISAs the kernels are compiled for; included before Highway in every kernel file.
#pragma once

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (1LL << 12)  // HWY_SSSE3: not worth its compile time

#include "backends/cpu/kernels/table.hpp"
#include "hwy/detect_targets.h"

// One declaration per compiled target of the functions that fill a table.
#define CYB_FILLS(ns)               \
  namespace ns {                    \
  void fill_dot32(KernelTable&);    \
  void fill_dotk(KernelTable&);     \
  void fill_dequant(KernelTable&);  \
  void fill_rows(KernelTable&);     \
  void fill_attend(KernelTable&);   \
  void fill_tile(KernelTable&);     \
  void fill_direct(KernelTable&);   \
  void fill_winograd(KernelTable&); \
  void fill_elements(KernelTable&); \
  void fill_integers(KernelTable&); \
  }
