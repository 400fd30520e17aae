// Runs the messages of a program of all-to-all rounds: see ccl/plan/exchange_rounds.h.
#pragma once

#include <optional>
#include <span>

#include "ccl/failure/rank_dump.h"
#include "ccl/run/bound_program.h"
#include "ccl/run/runnable_steps.h"
#include "ccl/transports/segment/all_to_all_exchange.h"

namespace trellis::ccl {

class RoundRunner {
 public:
  // How received messages are used: `take` gets each message of a step as it arrives; `sum` gets all messages of a
  // round, where they lie, once all have arrived.
  struct Use {
    void (*take)(void* context, std::uint32_t step, const std::byte* message);
    void (*sum)(void* context, std::uint32_t step, std::span<const void* const> sources);
    void* context;
  };
  RoundRunner(AllToAllExchange& rounds, RunnableSteps& steps, Use use) : rounds_(rounds), steps_(steps), use_(use) {}

  void begin(const BoundProgram&);
  bool done() const { return round_ == program().rounds.size(); }
  bool advance();  // true if something was sent or received

  struct Wait {
    std::uint32_t step;
    Rank peer;
  };
  std::optional<Wait> waits_for() const;  // the first message not received, else the first of its own that is unread
  std::vector<PendingMessage> pending() const;

 private:
  const ExchangeRounds& program() const { return bound_->compiled->rounds; }
  std::size_t bytes_of(const BufferRange& p) const { return p.elements * kernels::size_of(bound_->type); }
  enum class Phase : std::uint8_t { publish, read, be_read };  // what comes next in the round
  bool may_publish() const;
  void publish();
  bool receive();
  void end_reading();
  void end_round();
  void finish_sends();
  void sum(const ExchangeRounds::Round&);

  AllToAllExchange& rounds_;
  RunnableSteps& steps_;
  const Use use_;
  const BoundProgram* bound_ = nullptr;
  std::size_t round_ = 0;
  Phase phase_ = Phase::publish;
  std::vector<AllToAllExchange::Message> sent_;  // by rank
  std::vector<const std::byte*> messages_;       // by rank, of a round that is summed
  std::vector<const void*> sources_;
};

}  // namespace trellis::ccl
