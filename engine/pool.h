// Objects that calls lend one another.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace phasor::internal {

/// Objects of which each serves one user at a time. Nobody waits and nothing is locked: what lacks
/// is made, and of what comes back as much is kept as there are places. In the child of a fork,
/// what other threads had taken is lost.
template <typename T>
class Pool {
 public:
  Pool(int places, std::function<std::unique_ptr<T>()> make)
      : make_(std::move(make)), places_(places) {}
  ~Pool() {
    for (std::atomic<T*>& place : places_) delete place.load();
  }

  /// One of them, until it is dropped: at best the one that this number took last.
  auto take(int number = 0) {
    std::unique_ptr<T> object;
    for (size_t i = 0; i < places_.size() && !object; ++i) {
      if (place(number, i) != nullptr) object.reset(place(number, i).exchange(nullptr));
    }
    if (!object) object = make_();
    auto give_back = [this, number](T* back) {
      for (size_t i = 0; i < places_.size(); ++i) {
        T* none = nullptr;
        if (place(number, i).compare_exchange_strong(none, back)) return;
      }
      delete back;
    };
    return std::unique_ptr<T, decltype(give_back)>(object.release(), give_back);
  }

 private:
  std::atomic<T*>& place(int number, size_t i) {
    return places_[(static_cast<size_t>(number) + i) % places_.size()];
  }

  std::function<std::unique_ptr<T>()> make_;
  std::vector<std::atomic<T*>> places_;
};

}  // namespace phasor::internal
