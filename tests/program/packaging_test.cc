// What packaging/ says of phasor is what the rest of the repository says.
#include <regex>

#include "tests/support/run_program.h"

namespace phasor {
namespace {

std::string source(const std::string& file) {
  return read_text_file(std::filesystem::path(PHASOR_SOURCE_DIR) / file);
}

/// The first group of the first match.
std::string found_in(const std::string& text, const std::string& pattern) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(pattern))) << pattern;
  return match.str(1);
}

/// Names of packages between spaces or commas, without versions and profiles.
std::set<std::string> packages(const std::string& list) {
  std::istringstream words(std::regex_replace(list, std::regex(R"(\([^)]*\)|<[^>]*>|,)"), " "));
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(PackagingTest, DebianBuildsWithThePackagesOfDev) {
  std::set<std::string> wanted = packages(found_in(source("dev"), R"(build_packages=\(([^)]*)\))"));
  ASSERT_EQ(wanted.erase("libbenchmark-dev"), 1u);  // without the benchmarks
  wanted.merge(std::set<std::string>{"debhelper-compat", "dh-python", "help2man", "python3",
                                     "python3-setuptools"});
  EXPECT_EQ(
      packages(found_in(source("packaging/debian/control"), R"(Build-Depends:([\s\S]*?)\n\n)")),
      wanted);
}

TEST(PackagingTest, EveryPackageHasTheVersionOfTheHeader) {
  EXPECT_EQ(found_in(source("packaging/debian/changelog"), R"(^phasor \(([^)]*)\))"),
            PHASOR_VERSION);
  EXPECT_EQ(json::parse(source("packaging/vcpkg/phasor/vcpkg.json"))["version"], PHASOR_VERSION);
  EXPECT_EQ(found_in(source("packaging/conan/conanfile.py"), "\n    version = \"(.*)\""),
            PHASOR_VERSION);
  // setup.py reads the header.
  EXPECT_EQ(found_in(source("python/pyproject.toml"), "\ndynamic = (.*)\n"),
            R"(["version", "dependencies"])");
}

TEST(PackagingTest, DebianNamesTheLibrariesByTheirSonames) {
  const std::string control = source("packaging/debian/control");
  EXPECT_TRUE(contains(control, "\nPackage: libphasor" PHASOR_VERSION "\n"));
  EXPECT_TRUE(contains(
      source("CMakeLists.txt"),
      "set_target_properties(phasor_c PROPERTIES VERSION 2.${PROJECT_VERSION} SOVERSION 2)"));
  EXPECT_TRUE(contains(control, "\nPackage: libphasor-c2\n"));
}

}  // namespace
}  // namespace phasor
