// Panels: weights repacked as 16 output rows side by side, one stream per panel. Layouts: head of
// panels.cpp. Repacking moves bits only: every panel decodes to the same f32 values as its source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/cpu/kernels/table.hpp"
#include "tensor/dtype.hpp"

namespace cyb::cpu {

/// Name of the layouts below; changes with any of them.
inline constexpr const char* kPanelLayoutId = "cpu-panel16-1";

std::optional<PanelFormat> panel_format(DType dtype) noexcept;
/// Values of K that one panel block holds, and its bytes for 16 rows.
std::size_t panel_block_values(PanelFormat format) noexcept;
std::size_t panel_block_bytes(PanelFormat format) noexcept;
inline bool is_block_format(PanelFormat format) noexcept {
  return format < PanelFormat::kF32;
}

/// Bytes of one panel of n_in values a row. Float panels are padded with zeros to a multiple of 4
/// values.
std::size_t panel_bytes(PanelFormat format, std::size_t n_in) noexcept;
inline std::size_t n_panels(std::size_t n_out) noexcept {
  return (n_out + kPanelRows - 1) / kPanelRows;
}

/// Packs rows [16 panel, 16 panel + 16) of `source` (n_out rows of n_in values) into `out`; rows
/// past n_out are zero.
void pack_panel(PanelFormat format, const std::byte* source, std::size_t n_out, std::size_t n_in,
                std::size_t panel, std::byte* out) noexcept;

}  // namespace cyb::cpu
