// From one number to another.
#pragma once

namespace infer {

/// Both ends included.
struct Range {
  double low = 0, high = 0;
};

}  // namespace infer
