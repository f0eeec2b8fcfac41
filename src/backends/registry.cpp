// Backends by name, from backend_list.inc.
#include <fmt/format.h>

#include <array>
#include <exception>

#include "backends/backend.hpp"

namespace cyb {

#define CYB_BACKEND(name, factory) \
  Result<std::shared_ptr<Backend>> factory(const BackendOptions& options);
#include "backends/backend_list.inc"
#undef CYB_BACKEND

namespace {

struct Entry {
  std::string_view name;
  Result<std::shared_ptr<Backend>> (*create)(const BackendOptions&);
};

constexpr std::array kBackends = {
#define CYB_BACKEND(name, factory) Entry{name, factory},
#include "backends/backend_list.inc"
#undef CYB_BACKEND
};

/// Threads and memory may run out while a backend starts.
Result<std::shared_ptr<Backend>> start(const Entry& entry, const BackendOptions& options) {
  try {
    return entry.create(options);
  } catch (const std::exception& e) {
    return fail(
        Error(ErrorKind::kBackendInit, fmt::format("{}: cannot start: {}", entry.name, e.what())));
  }
}

Error unknown_backend(std::string_view name) {
  std::string list = "auto";
  for (const Entry& entry : kBackends) list += fmt::format(", {}", entry.name);
  return Error(ErrorKind::kDispatch, "D7",
               fmt::format("unknown backend \"{}\"; choose one of {}", name, list));
}

}  // namespace

Result<std::shared_ptr<Backend>> create_backend(std::string_view name,
                                                const BackendOptions& options) {
  if (name == "auto") return start(kBackends.front(), options);
  for (const Entry& entry : kBackends) {
    if (entry.name == name) return start(entry, options);
  }
  return fail(unknown_backend(name));
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kBackends) names.push_back(entry.name);
  return names;
}

}  // namespace cyb
