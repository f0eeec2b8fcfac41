// Processor counts from sched_getaffinity, sysfs topology and cgroup v2 or v1 quotas. Whatever
// cannot be read is ignored.
#include "base/cpu_count.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#endif

namespace cyb {
namespace {

#if defined(__linux__)

/// First bytes of a small kernel file (its st_size says nothing), or empty.
std::string kernel_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(255, '\0');
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

double first_number(std::string_view text) {
  double value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// CPUs that the quota allows, rounded up; 0: no quota.
unsigned quota_cpus() {
  double quota = -1, period = -1;
  const std::string v2 = kernel_file("/sys/fs/cgroup/cpu.max");
  if (const std::size_t space = v2.find(' '); space != std::string::npos) {
    quota = first_number(v2);
    period = first_number(std::string_view(v2).substr(space + 1));
  } else {
    quota = first_number(kernel_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
    period = first_number(kernel_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1u, static_cast<unsigned>((quota + period - 1) / period));
}

std::vector<unsigned> affinity() {
  std::vector<unsigned> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

unsigned distinct_cores(const std::vector<unsigned>& cpus) {
  std::vector<std::string> cores;
  for (const unsigned cpu : cpus) {
    const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string siblings = kernel_file(base + "thread_siblings_list");
    if (siblings.empty()) siblings = std::to_string(cpu);
    cores.push_back(std::move(siblings));
  }
  std::sort(cores.begin(), cores.end());
  return static_cast<unsigned>(std::unique(cores.begin(), cores.end()) - cores.begin());
}

#endif

unsigned limited(unsigned count) {
#if defined(__linux__)
  if (const unsigned quota = quota_cpus(); quota != 0) count = std::min(count, quota);
#endif
  return std::max(1u, count);
}

}  // namespace

unsigned usable_processors() noexcept {
#if defined(__linux__)
  if (const auto cpus = affinity(); !cpus.empty())
    return limited(static_cast<unsigned>(cpus.size()));
#endif
  return limited(std::thread::hardware_concurrency());
}

unsigned usable_cores() noexcept {
#if defined(__linux__)
  if (const auto cpus = affinity(); !cpus.empty()) return limited(distinct_cores(cpus));
#endif
  return limited(std::thread::hardware_concurrency());
}

}  // namespace cyb
