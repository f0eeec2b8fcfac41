// Reads /proc and the memory control groups (version 2 and 1). Files that are not there limit
// nothing.
#include "runtime/memory.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace cyb {
namespace {

std::optional<std::uint64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t:"), text.size()));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

/// The number after `key` at the start of a line. These files state no size: they are read to their
/// end.
std::optional<std::uint64_t> field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return number_at(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> whole_number(const std::string& path) {
  return field(path, "");
}

/// Limit minus use of one group; the use counts the page cache, which gives way.
std::optional<std::uint64_t> group_room(const std::string& folder, std::string_view limit,
                                        std::string_view usage, std::string_view cache_key) {
  const auto max = whole_number(folder + std::string(limit));
  const auto used = whole_number(folder + std::string(usage));
  if (!max || !used) return std::nullopt;
  const std::uint64_t cache = field(folder + "memory.stat", cache_key).value_or(0);
  const std::uint64_t firm = *used > cache ? *used - cache : 0;
  return *max > firm ? *max - firm : 0;
}

}  // namespace

std::uint64_t usable_memory_bytes() {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t room = kNone;
  if (const auto kib = field("/proc/meminfo", "MemAvailable:")) room = *kib * 1024;
  const auto v2 = group_room("/sys/fs/cgroup/", "memory.max", "memory.current", "inactive_file ");
  const auto v1 = group_room("/sys/fs/cgroup/memory/", "memory.limit_in_bytes",
                             "memory.usage_in_bytes", "total_inactive_file ");
  if (v2) room = std::min(room, *v2);
  if (v1) room = std::min(room, *v1);
  return room == kNone ? 0 : room;
}

std::array<MemoryPool, 7> memory_pools(const MemoryPools& pools) noexcept {
  return {{{"weights_mapped", pools.weights_mapped},
           {"weights_packed", pools.weights_packed},
           {"weights_own", pools.weights_own},
           {"kv", pools.kv},
           {"run", pools.run},
           {"text", pools.text},
           {"process", pools.process}}};
}

std::uint64_t allocated_bytes() noexcept {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

std::uint64_t resident_bytes() {
  return field("/proc/self/status", "VmRSS:").value_or(0) * 1024;
}

std::uint64_t unread_code_bytes() {
  std::error_code none;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();
  if (program.empty()) return 0;
  std::ifstream file("/proc/self/smaps");
  std::string line;
  std::uint64_t unread = 0, size = 0;
  bool code = false;
  while (std::getline(file, line)) {
    if (line.starts_with("Size:")) size = number_at(std::string_view(line).substr(5)).value_or(0);
    if (code && line.starts_with("Rss:")) {
      const std::uint64_t resident = number_at(std::string_view(line).substr(4)).value_or(size);
      unread += size - std::min(size, resident);
    }
    // "55d0c0000000-55d0c0800000 r-xp 00000000 fd:00 123   /path": lower-case digits begin it.
    if (line.empty() || !std::isxdigit(static_cast<unsigned char>(line[0]))) continue;
    if (line.find('-') == std::string::npos || std::isupper(static_cast<unsigned char>(line[0])))
      continue;
    code = line.find(" r-xp ") != std::string::npos && line.ends_with(program);
  }
  return unread * 1024;
}

std::uint64_t peak_resident_bytes() {
  return field("/proc/self/status", "VmHWM:").value_or(0) * 1024;
}

}  // namespace cyb
