// The keys of one life of a group. A job that starts again may keep its torch store, in which earlier lives have left
// their keys, and no variable tells the life: TORCHELASTIC_RESTART_COUNT counts what the node's own agent restarts, and
// differs between nodes. So the ranks find it out over the store. Rank 0 numbers the life that it begins. The others
// each take a number when they ask, and rank 0 answers while it waits for them: "2 1", all who have asked up to number
// 2 belong to life 1. A number is never taken twice, so no rank mistakes an earlier life's answer for its own.
#pragma once

#include <optional>

#include "trellis/torch/native/torch_store_adapter.h"

namespace trellis::process_group {

// For the creation of a communicator, in one thread. The first call finds the life; on ranks other than 0 it waits for
// rank 0, and throws PeerLost when the timeout has passed.
class LifeStore : public ccl::Store {
 public:
  LifeStore(c10::intrusive_ptr<c10d::Store> store, int rank, std::chrono::milliseconds timeout)
      : store_(std::move(store)), of_all_lives_(store_, ""), rank_(rank), timeout_(timeout) {}

  void set(std::string_view key, std::span<const std::byte> value) override { notes().set(key, value); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return notes().add(key, amount); }
  // On rank 0 it also answers the others, and throws when this life cannot come about: another rank 0 has begun a later
  // one, or two processes have come as the same rank.
  ccl::Bytes get(std::string_view key, ccl::Deadline) override;

  c10::intrusive_ptr<c10d::Store> store_of_life();  // for all other keys of the group

 private:
  TorchStoreAdapter& notes();
  std::optional<std::string> said(const std::string& key);
  std::int64_t life_by_rank_zero();
  std::int64_t answer_to(std::int64_t ask, ccl::Deadline);
  void answer();
  void expect_one_of_each();
  std::string prefix() const { return "life " + std::to_string(life_); }

  const c10::intrusive_ptr<c10d::Store> store_;
  TorchStoreAdapter of_all_lives_;
  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::int64_t life_ = 0;  // counted from 1; 0: not known yet
  c10::intrusive_ptr<c10d::Store> of_life_;
  std::optional<TorchStoreAdapter> notes_;  // of this life, for the communicator
  std::string answered_ = "0";              // how many had asked when rank 0 answered last
  bool failed_ = false;                     // rank 0 answers no more
};

}  // namespace trellis::process_group
