// Names of an enum's values, as a file that nothing else is compiled with defines them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "phasor/names.h"

// Each in the order of its enum; `last` is the enum's last value.
#define PHASOR_NAMES(Enum, last, what, ...)                                               \
  template <>                                                                             \
  const EnumNames& names<Enum>() {                                                        \
    static constexpr std::array<std::string_view, static_cast<size_t>(last) + 1> kAll = { \
        __VA_ARGS__};                                                                     \
    static_assert(!kAll.back().empty());                                                  \
    static constexpr EnumNames kNames{what, kAll};                                        \
    return kNames;                                                                        \
  }
