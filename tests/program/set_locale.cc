// For LD_PRELOAD: the locale of the environment for C and C++, as if a program set it first thing.
#include <locale>

namespace {
[[maybe_unused]] const std::locale kBefore = std::locale::global(std::locale(""));
}
