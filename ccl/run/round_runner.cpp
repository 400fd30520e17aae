#include "ccl/run/round_runner.h"

namespace trellis::ccl {
namespace {

constexpr int patient_looks = 16;  // polls for the last message of a round; a fraction of a microsecond

}  // namespace

void RoundRunner::begin(const BoundProgram& bound) {
  bound_ = &bound;
  round_ = 0;
  phase_ = Phase::publish;
  messages_.resize(static_cast<std::size_t>(program().ranks));
  for (const ExchangeRounds::Round& round : program().rounds)
    if (round.sum != ExchangeRounds::none) steps_.hold(round.sum);
}

bool RoundRunner::may_publish() const {
  for (Rank r = 0; r < program().ranks; ++r)
    if (r != rounds_.rank() && steps_.waits(program().send(round_, r))) return false;
  return true;
}

void RoundRunner::publish() {
  const ExchangeRounds& p = program();
  const ExchangeRounds::Round& round = p.rounds[round_];
  const auto message = [&](Rank to) {
    const BufferRange& from = bound_->compiled->steps[p.send(round_, to)].from;
    return from.elements == 0 ? AllToAllExchange::Message{}
                              : AllToAllExchange::Message(bound_->at(from), bytes_of(from));
  };
  sent_.clear();
  if (round.same) sent_.push_back(message(rounds_.rank() == 0 ? 1 : 0));
  for (Rank r = 0; !round.same && r < p.ranks; ++r)
    sent_.push_back(r == rounds_.rank() ? AllToAllExchange::Message{} : message(r));
  rounds_.publish(bound_->round_mark, sent_, round.same, round.may_stay);
  phase_ = Phase::read;
  if (!rounds_.stays()) finish_sends();
}

void RoundRunner::finish_sends() {
  for (Rank r = 0; r < program().ranks; ++r)
    if (r != rounds_.rank()) steps_.finish(program().send(round_, r));
}

bool RoundRunner::receive() {
  bool received = false;
  const bool summed = program().rounds[round_].sum != ExchangeRounds::none;
  const std::vector<Rank>& missing = rounds_.missing();
  for (std::size_t i = 0; i < missing.size();) {
    const Rank from = missing[i];
    const std::uint32_t step = program().receive(round_, from);
    const std::byte* const message =
        steps_.waits(step) ? nullptr
                           : rounds_.arrived(from, bytes_of(bound_->compiled->steps[step].to), bound_->round_mark);
    if (message == nullptr) {
      ++i;
      continue;
    }
    if (summed)
      messages_[static_cast<std::size_t>(from)] = message;
    else
      rounds_.read_in_place([&] { use_.take(use_.context, step, message); });
    rounds_.read(from);
    steps_.finish(step);
    received = true;
  }
  return received;
}

void RoundRunner::sum(const ExchangeRounds::Round& round) {
  const CompiledStep& step = bound_->compiled->steps[round.sum];
  const auto place = [&](std::size_t i) -> const BufferRange& {
    return i == 0 ? step.from : bound_->compiled->places[step.further + i - 1];
  };
  sources_.clear();
  for (std::size_t i = 0; i < round.summed.size(); ++i) {
    const Rank from = round.summed[i];
    sources_.push_back(from < 0 ? bound_->at(place(i)) : messages_[static_cast<std::size_t>(from)]);
  }
  use_.sum(use_.context, round.sum, sources_);
  steps_.finish(round.sum);
}

void RoundRunner::end_reading() {
  if (const ExchangeRounds::Round& round = program().rounds[round_]; round.sum != ExchangeRounds::none)
    rounds_.read_in_place([&] { sum(round); });
  rounds_.end_reading();
  phase_ = Phase::be_read;
}

void RoundRunner::end_round() {
  if (rounds_.stays()) finish_sends();
  rounds_.end();
  ++round_;
  phase_ = Phase::publish;
}

bool RoundRunner::advance() {
  bool moved = false;
  while (!done()) {
    if (phase_ == Phase::publish) {
      if (!may_publish()) return moved;
      publish();
      moved = true;
    }
    if (phase_ == Phase::read) {
      moved |= receive();
      for (int look = 0; look < patient_looks && rounds_.missing().size() == 1; ++look) moved |= receive();
      if (!rounds_.missing().empty()) return moved;
      end_reading();
    }
    if (rounds_.reader() >= 0) return moved;
    end_round();
  }
  return moved;
}

std::optional<RoundRunner::Wait> RoundRunner::waits_for() const {
  if (done() || phase_ == Phase::publish) return std::nullopt;
  if (const std::vector<Rank>& missing = rounds_.missing(); !missing.empty())
    return Wait{program().receive(round_, missing.front()), missing.front()};
  const Rank reader = rounds_.reader();
  if (reader < 0) return std::nullopt;
  return Wait{program().send(round_, reader), reader};
}

std::vector<PendingMessage> RoundRunner::pending() const {
  std::vector<PendingMessage> all;
  if (done() || phase_ == Phase::publish) return all;
  const auto add = [&](Rank peer, bool receives, const BufferRange& place) {
    all.push_back({peer, receives, bytes_of(place)});
  };
  const std::vector<CompiledStep>& steps = bound_->compiled->steps;
  for (const Rank r : rounds_.missing()) add(r, true, steps[program().receive(round_, r)].to);
  for (Rank r = 0; r < program().ranks; ++r)
    if (r != rounds_.rank() && rounds_.is_reader(r)) add(r, false, steps[program().send(round_, r)].from);
  return all;
}

}  // namespace trellis::ccl
