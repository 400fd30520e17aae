#include "ccl/interruption.h"

#include <chrono>
#include <utility>

namespace trellis::ccl {
namespace {

using AskedClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_questions{100};

using Question = bool (*)();

constinit thread_local Question asked = nullptr;
constinit thread_local AskedClock::time_point next = {};

}  // namespace

Interruption::Interruption(bool (*wanted)()) : before_(std::exchange(asked, wanted)) {}

Interruption::~Interruption() { asked = before_; }

bool interrupted() {
  if (asked == nullptr) return false;
  const AskedClock::time_point now = AskedClock::now();
  if (now < next) return false;
  next = now + between_questions;
  return asked();
}

}  // namespace trellis::ccl
