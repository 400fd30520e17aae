#include "trellis/torch/native/life_store.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <sstream>
#include <thread>

#include "trellis/torch/native/progress/python_signals.h"

namespace trellis::process_group {
namespace {

constexpr const char *lives = "lives", *asks = "asks";  // counters
constexpr const char* last_answer = "life";
constexpr const char* come_twice = "/come twice";  // of a life: the rank as which two processes have come

// The time between two looks at the store: short at first, as ranks mostly come together.
class Pause {
 public:
  std::chrono::microseconds next() { return std::exchange(length_, std::min(2 * length_, longest)); }

 private:
  static constexpr std::chrono::microseconds longest{5000};
  std::chrono::microseconds length_{50};
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TorchStoreAdapter& LifeStore::notes() {
  if (!notes_) {
    life_ = rank_ == 0 ? of_all_lives_.add(lives, 1) : life_by_rank_zero();
    of_life_ = c10::make_intrusive<c10d::PrefixStore>(prefix(), store_);
    notes_.emplace(of_life_, "group/");
  }
  return *notes_;
}

c10::intrusive_ptr<c10d::Store> LifeStore::store_of_life() {
  notes();
  return of_life_;
}

// The torch store's value; none where nobody has set the key. Torch keeps counters as text.
std::optional<std::string> LifeStore::said(const std::string& key) {
  if (!store_->check({key})) return std::nullopt;
  const std::vector<std::uint8_t> value = store_->get(key);
  return std::string(value.begin(), value.end());
}

// A life that another process has entered as this rank is not this one's: rank 0 is told, gives it up, and may begin
// another.
std::int64_t LifeStore::life_by_rank_zero() {
  const ccl::Deadline deadline = ccl::Clock::now() + timeout_;
  for (;;) {
    life_ = answer_to(of_all_lives_.add(asks, 1), deadline);
    if (of_all_lives_.add(prefix() + "/come/" + std::to_string(rank_), 1) == 1) return life_;
    of_all_lives_.set(prefix() + come_twice, bytes_of(std::to_string(rank_)));
  }
}

std::int64_t LifeStore::answer_to(std::int64_t ask, ccl::Deadline deadline) {
  for (Pause pause;;) {
    if (const auto text = said(last_answer)) {
      std::int64_t last = 0, life = 0;
      if (!(std::istringstream(*text) >> last >> life))
        throw std::invalid_argument("the torch store has '" + *text + "' as " + last_answer + ", expected two numbers");
      if (last >= ask) return life;
    }
    if (ccl::Clock::now() >= deadline)
      throw ccl::PeerLost(0, -1,
                          life_ == 0 ? "rank 0 did not join in time"
                                     : "rank 0 did not begin again in time, after another process had joined as rank " +
                                           std::to_string(rank_) + ": two were told the same rank, or it has died");
    raise_if_interrupted();
    std::this_thread::sleep_for(pause.next());
  }
}

void LifeStore::expect_one_of_each() {
  if (said(lives) != std::to_string(life_))
    throw std::runtime_error(
        "another process has joined as rank 0: two were told the same rank, or the job was started again");
  if (const auto rank = said(prefix() + come_twice))
    throw ccl::PeerLost(std::stoi(*rank), -1,
                        "two processes have joined as rank " + *rank +
                            ": they were told the same rank, or the first has died and was started again");
}

void LifeStore::answer() {
  const auto asked = said(asks);
  if (!asked || *asked == answered_) return;
  of_all_lives_.set(last_answer, bytes_of(*asked + " " + std::to_string(life_)));
  answered_ = *asked;
}

// Once this life has failed, the communicator still uses the store to tell the others why.
ccl::Bytes LifeStore::get(std::string_view key, ccl::Deadline deadline) {
  TorchStoreAdapter& notes = this->notes();
  if (rank_ != 0 || failed_) return notes.get(key, deadline);
  for (Pause pause;;) {
    answer();
    const ccl::Deadline soon = std::min<ccl::Deadline>(deadline, ccl::Clock::now() + pause.next());
    try {
      return notes.get(key, soon);
    } catch (const ccl::TimedOut&) {
      if (soon == deadline) throw;
    }
    failed_ = true;
    expect_one_of_each();
    failed_ = false;
  }
}

}  // namespace trellis::process_group
