// Linux tells in /proc/self/cgroup which groups a process is in, and in /proc/self/mountinfo where
// their hierarchies are mounted. A container sees a part: the mount's root is then its own group.

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/team.h"
#include "files/spelling.h"

namespace phasor::internal {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool lists(const std::string& names, std::string_view name) {
  return std::ranges::count(split(names, ','), name) > 0;
}

/// The groups that this process is in, as the kernel names them from the root of a hierarchy.
struct Groups {
  std::optional<std::string> cpu;      // in version 1's hierarchy of the controller `cpu`
  std::optional<std::string> unified;  // in version 2's
};

Groups read_groups(const std::string& root) {
  Groups groups;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/a/b", "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) groups.unified = line.substr(second + 1);
    if (lists(controllers, "cpu")) groups.cpu = line.substr(second + 1);
  }
  return groups;
}

/// A mounted hierarchy: the folder `point` shows the group `group` and those in it.
struct Mount {
  std::string group, point;
  bool unified;
};

/// mountinfo writes a space as "\040".
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '\\' && text.size() - i > 3 &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  // "32 31 0:29 GROUP POINT rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (words.end() - dash < 4 || dash - words.begin() < 6) continue;
    const bool unified = dash[1] == "cgroup2";
    if (!unified && !(dash[1] == "cgroup" && lists(dash[3], "cpu"))) continue;
    mounts.push_back({unescaped(words[3]), unescaped(words[4]), unified});
  }
  return mounts;
}

bool goes_up(const std::string& path) { return std::ranges::count(split(path, '/'), "..") > 0; }

/// The way from a mount's point to `group`: "", "/a/b"; empty where the mount does not show it.
std::optional<std::string> way_to(const std::string& group, const Mount& mount) {
  const std::string above = mount.group == "/" ? "" : mount.group;
  if (group == "/" || group == above) {
    // From inside a namespace of groups, a mount from outside begins at "/..": a parent.
    if (above.empty() || group == above || goes_up(above)) return "";
    return std::nullopt;
  }
  if (!group.starts_with(above + "/")) return std::nullopt;
  const std::string way = group.substr(above.size());
  return goes_up(way) ? std::nullopt : std::optional(way);
}

/// All words of a file as whole numbers; empty where one is none, such as "max".
std::vector<int64_t> read_numbers(const std::string& path) {
  std::ifstream file(path);
  std::vector<int64_t> numbers;
  for (std::string word; file >> word;) {
    const auto number = parse_number<int64_t>(word);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

/// The quota in the files of one group.
std::optional<double> quota_of(const std::string& folder, bool unified) {
  std::vector<int64_t> numbers;  // microseconds: quota, period
  if (unified) {
    numbers = read_numbers(folder + "/cpu.max");
  } else {
    numbers = read_numbers(folder + "/cpu.cfs_quota_us");  // -1: none
    const std::vector<int64_t> period = read_numbers(folder + "/cpu.cfs_period_us");
    numbers.insert(numbers.end(), period.begin(), period.end());
  }
  if (numbers.size() != 2 || numbers[0] <= 0 || numbers[1] <= 0) return std::nullopt;
  return static_cast<double>(numbers[0]) / static_cast<double>(numbers[1]);
}

/// How many cores the calling thread's affinity has.
int affinity() {
#ifdef __linux__
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {  // too few for the kernel: EINVAL
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  const Groups groups = read_groups(root);
  for (const Mount& mount : read_mounts(root)) {
    const std::optional<std::string>& group = mount.unified ? groups.unified : groups.cpu;
    std::optional<std::string> way = group ? way_to(*group, mount) : std::nullopt;
    while (way) {
      const std::optional<double> quota = quota_of(root + mount.point + *way, mount.unified);
      if (quota) least = std::min(*quota, least.value_or(*quota));
      if (way->empty()) break;
      way->resize(way->rfind('/'));
    }
  }
  return least;
}

int num_cores() {
  const double cores = std::max(1, affinity());
  return static_cast<int>(std::min(cores, std::ceil(cpu_quota().value_or(cores))));
}

}  // namespace phasor::internal
