// The cores that a process may use: its affinity, and the quota of its control groups. A program of
// its own, because processes with one thread are made of it.
#include <sched.h>

#include "engine/team.h"
#include "tests/support/run_program.h"

namespace phasor {
using namespace internal;

namespace {

std::vector<int> own_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;  // more than 1024 CPUs
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

TEST(CoresTest, AProcessBoundToSomeCpusStartsAThreadForEach) {
  const std::vector<int> cpus = own_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "this process may use one CPU";
  const int quota = static_cast<int>(std::ceil(cpu_quota().value_or(1000)));
  for (const size_t count : {size_t{1}, cpus.size() - 1}) {
    const int found = in_child([&] {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (size_t i = 0; i < count; ++i) CPU_SET(cpus[i], &set);
      return sched_setaffinity(0, sizeof(set), &set) == 0 ? team_size(0) : 255;
    });
    EXPECT_EQ(found, std::min(static_cast<int>(count), quota));
  }
  EXPECT_EQ(num_cores(), std::min(static_cast<int>(cpus.size()), quota));
}

bool write_all(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  return stream.good();
}

/// The files of a machine that is not there.
class FakeRoot {
 public:
  /// `groups` is /proc/self/cgroup, `mounts` /proc/self/mountinfo.
  FakeRoot(const std::string& groups, const std::string& mounts) {
    write("/proc/self/cgroup", groups);
    write("/proc/self/mountinfo", mounts);
  }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = folder_.path().string() + file;
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(write_all(path, text)) << path;
  }
  /// Version 1's two files.
  void write_v1(const std::string& group, const std::string& quota, const std::string& period) {
    write(group + "/cpu.cfs_quota_us", quota);
    write(group + "/cpu.cfs_period_us", period);
  }
  std::optional<double> quota() const { return cpu_quota(folder_.path().string()); }

 private:
  TempFolder folder_;
};

constexpr const char* kUnifiedMount =
    "24 1 0:22 / / rw - ext4 /dev/sda rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CoresTest, OfTheUnifiedHierarchyTheLeastOfTheGroupAndItsParentsCounts) {
  FakeRoot root("0::/user.slice/job.scope\n", kUnifiedMount);
  EXPECT_EQ(root.quota(), std::nullopt);
  root.write("/sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  root.write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(root.quota(), std::nullopt);
  root.write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(root.quota(), 8);
  root.write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(root.quota(), 1.5);
  root.write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.quota(), 1.5);
  root.write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "50000 200000\n");
  EXPECT_EQ(root.quota(), 0.25);
}

TEST(CoresTest, OfTheFirstVersionTheControllersOwnHierarchyCounts) {
  for (const auto& [name, point] : {std::pair("cpu", "/sys/fs/cgroup/cpu"),
                                    {"cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"},
                                    {"cpuacct,cpu", "/cgroups/of\\040all"}}) {
    const std::string controllers = name, mounted = point;
    FakeRoot root("5:cpuset:/pinned\n4:" + controllers + ":/slurm/job_7\n3:cpuacct:/else\n",
                  "31 24 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                  "32 24 0:29 / " +
                      mounted + " rw shared:1 master:2 - cgroup cgroup rw," + controllers + "\n");
    const std::string folder = mounted[1] == 'c' ? "/cgroups/of all" : mounted;
    root.write_v1(folder + "/else", "10000\n", "100000\n");
    root.write_v1("/sys/fs/cgroup/cpuset/pinned", "10000\n", "100000\n");
    root.write_v1(folder + "/slurm/job_7", "-1\n", "100000\n");
    EXPECT_EQ(root.quota(), std::nullopt) << controllers;
    root.write_v1(folder + "/slurm", "300000\n", "100000\n");
    EXPECT_EQ(root.quota(), 3) << controllers;
    root.write_v1(folder + "/slurm/job_7", "125000\n", "50000\n");
    EXPECT_EQ(root.quota(), 2.5) << controllers;
  }
}

TEST(CoresTest, OfBothVersionsAtOnceTheLeastCounts) {
  FakeRoot root("1:cpu:/a\n0::/b\n",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  root.write_v1("/sys/fs/cgroup/cpu/a", "400000", "100000");
  EXPECT_EQ(root.quota(), 4);
  root.write("/sys/fs/cgroup/unified/b/cpu.max", "300000 100000");
  EXPECT_EQ(root.quota(), 3);
}

TEST(CoresTest, AContainerFindsItsGroupAtTheMountsPoint) {
  const std::string point = "/sys/fs/cgroup/cpu";
  struct Case {
    const char* what;
    const char* group;       // in /proc/self/cgroup
    const char* mount_root;  // in mountinfo
    const char* folder;      // where the quota stands
    std::optional<double> quota;
  };
  const Case cases[] = {
      {"of the host's namespace", "/docker/abc", "/docker/abc", "", 2},
      {"a group in it", "/docker/abc/in", "/docker/abc", "/in", 2},
      {"its parent", "/docker/abc/in/deep", "/docker/abc", "/in", 2},
      {"of a namespace of its own", "/", "/", "", 2},
      {"a namespace made after the mount", "/", "/..", "", 2},
      {"a group beside that namespace", "/../other", "/..", "/other", 2},
      {"a mount of another group", "/docker/abc", "/docker/xyz", "", std::nullopt},
      {"a name that begins alike", "/docker/abcd", "/docker/abc", "", std::nullopt},
      {"of another group, from the root", "/", "/docker/abc", "", std::nullopt},
      {"outside what is mounted", "/../other", "/", "", std::nullopt}};
  for (const Case& c : cases) {
    FakeRoot root(
        std::string("3:cpu:") + c.group + "\n",
        std::string("32 31 0:29 ") + c.mount_root + " " + point + " rw - cgroup cgroup rw,cpu\n");
    root.write_v1(point + c.folder, "200000", "100000");
    root.write_v1("/sys/fs/cgroup/other", "100000", "100000");
    EXPECT_EQ(root.quota(), c.quota) << c.what;
  }
}

TEST(CoresTest, MalformedFilesSetNoQuota) {
  EXPECT_EQ(cpu_quota("/nowhere"), std::nullopt);
  for (const char* const text :
       {"", "\n", "100000", "-1 100000", "100000 0", "0 100000", "100000 -5", "1e5 100000",
        "100000x 100000", "100000 100000 1", "99999999999999999999 100000", "max", "nan 100000"}) {
    FakeRoot root("0::/a\n", kUnifiedMount);
    root.write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(root.quota(), std::nullopt) << text;
    root.write("/sys/fs/cgroup/cpu.max", "700000 100000");
    EXPECT_EQ(root.quota(), 7) << text << ": the parent's";
  }
  for (const char* const mounts :
       {"-", " - cgroup2 a b\n", "1 2 3 / /sys/fs/cgroup\n", "\\0 \\04 - cgroup2 \\"}) {
    FakeRoot root("0\n::\n0::\n:cpu\n0::/\\04\n", mounts);
    root.write("/sys/fs/cgroup/cpu.max", "100000 100000");
    EXPECT_EQ(root.quota(), std::nullopt) << mounts;
  }
}

}  // namespace
}  // namespace phasor
