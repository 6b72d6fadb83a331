#include "engine/watch.h"

#include <array>

namespace phasor::internal {

Watch::Watch(Observer* observer, int64_t num_layers) : observer_(observer) {
  if (observer_ == nullptr) return;
  rights_.resize((1 + num_layers) * kNumHooks);
  for (int i = 0; i < kNumHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    const int64_t first = is_block_hook(hook) ? 0 : -1;
    const int64_t last = is_block_hook(hook) ? num_layers - 1 : -1;
    for (int64_t layer = first; layer <= last; ++layer) {
      const int sees = observer_->wants(hook, layer) ? kSees : 0;
      const int changes = observer_->changes(hook, layer) ? kChanges : 0;
      rights_[index(hook, layer)] = static_cast<uint8_t>(sees | changes);
    }
  }
}

bool Watch::is_anywhere(int rights, Hook hook) const {
  if (!active()) return false;
  for (size_t i = index(hook, -1); i < rights_.size(); i += kNumHooks) {
    if ((rights_[i] & rights) != 0) return true;
  }
  return false;
}

void Watch::tell(const HookEvent& event, std::span<float> values) const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  try {
    if (changes(event.hook, event.layer)) observer_->change(event, values);
    if (is(kSees, event.hook, event.layer)) observer_->observe(event);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void Watch::rows(Hook hook, int64_t layer, const std::vector<Segment>& segments, float* values,
                 std::initializer_list<int64_t> row_shape) const {
  if (!wants(hook, layer)) return;
  std::vector<int64_t> shape = {0};
  shape.insert(shape.end(), row_shape);
  int64_t width = 1;
  for (const int64_t dim : row_shape) width *= dim;
  for (const Segment& segment : segments) {
    shape[0] = segment.num_tokens();
    const std::span slice(values + segment.first_row * width, shape[0] * width);
    tell({hook, layer, segment.sequence, segment.first_token, shape, slice}, slice);
  }
}

void Watch::attention_map(Hook hook, int64_t layer, const Segment& segment, float* map,
                          int64_t num_heads) const {
  if (!wants(hook, layer)) return;
  const int64_t tokens = segment.num_tokens();
  const std::array<int64_t, 3> shape = {num_heads, tokens, tokens};
  const std::span values(map, num_heads * tokens * tokens);
  tell({hook, layer, segment.sequence, segment.first_token, shape, values}, values);
}

}  // namespace phasor::internal
