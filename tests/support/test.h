// What nearly every test includes: GoogleTest, JSON, fmt, the standard library, phasor's public
// headers, files, and the checks of numbers and errors; and two short names.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "phasor/phasor.h"
#include "tests/support/expect_close.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_files.h"

namespace phasor {

namespace fs = std::filesystem;
using nlohmann::json;

}  // namespace phasor
