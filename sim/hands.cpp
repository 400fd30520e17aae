#include "sim/hands.h"

#include <algorithm>
#include <utility>

namespace trellis::sim {

Hands::Hands(int count) {
  for (int hand = 1; hand < count; ++hand) threads_.emplace_back([this, hand] { serve(hand); });
}

Hands::~Hands() {
  work_ = nullptr;
  ++round_;
  round_.notify_all();
}

void Hands::serve(int hand) {
  for (std::uint32_t seen = 0;; ++seen) {
    round_.wait(seen);
    if (!work_) return;
    attempt(hand);
    if (--busy_ == 0) busy_.notify_one();
  }
}

void Hands::attempt(int hand) {
  try {
    (*work_)(hand);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Hands::run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_ = static_cast<std::uint32_t>(threads_.size());
  ++round_;
  round_.notify_all();
  attempt(0);
  for (std::uint32_t left = busy_; left != 0; left = busy_) busy_.wait(left);
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

int processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace trellis::sim
