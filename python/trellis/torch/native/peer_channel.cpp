#include "trellis/torch/native/peer_channel.h"

#include <regex>

namespace trellis::process_group {
namespace {

constexpr ccl::Rank sender = 0, receiver = 1;  // of a channel's communicator

// The communicator waits without end, as a receive may be asked for at any time; operations have their own deadlines.
ccl::Config patient(ccl::Config config) {
  config.timeout = std::chrono::hours(24 * 365);
  config.wire = kernels::DType::f32;
  return config;
}

// The text of a channel's error, which names its ranks "rank 0" and "rank 1", with the group's numbers.
std::string with_ranks_of_group(const std::string& text, int from, int to) {
  static const std::regex of_channel("\\brank ([01])\\b");
  std::string out;
  auto rest = text.begin();
  for (std::sregex_iterator found(text.begin(), text.end(), of_channel), end; found != end; ++found) {
    out.append(rest, (*found)[1].first);
    out += std::to_string((*found)[1] == "0" ? from : to);
    rest = (*found)[1].second;
  }
  return out.append(rest, text.end());
}

}  // namespace

PeerChannel::PeerChannel(c10::intrusive_ptr<c10d::Store> store, const Membership& group, int from, int to,
                         const ccl::Config& config)
    : store_(std::move(store), "p2p/" + std::to_string(from) + ">" + std::to_string(to) + "/"),
      from_(from),
      to_(to),
      me_(group.rank),
      config_(patient(config)) {}

void PeerChannel::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw ccl::Aborted("the messages between the two ranks have ended");
    if (comm_) return;
  }
  meet();
  auto store = std::shared_ptr<ccl::Store>(std::shared_ptr<void>(), &store_);
  auto made = ccl::Communicator::create(store, me_ == from_ ? sender : receiver, 2, config_);
  const std::lock_guard lock(mutex_);
  comm_ = std::move(made);
  if (aborted_) comm_->abort();
}

// Waits until the other end wants to connect, too: making a communicator would wait for it without end.
void PeerChannel::meet() {
  store_.set(me_ == from_ ? "sender is here" : "receiver is here", {});
  for (;;) {
    try {
      store_.get(me_ == from_ ? "receiver is here" : "sender is here",
                 ccl::Clock::now() + std::chrono::milliseconds(50));
      return;
    } catch (const ccl::TimedOut&) {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw ccl::Aborted("the messages between the two ranks have ended");
    }
  }
}

template <class Run>
void PeerChannel::run(Run&& what) {
  const auto of_group = [this](ccl::Rank rank) { return rank == sender ? from_ : rank == receiver ? to_ : -1; };
  const auto said = [this](const std::exception& error) { return with_ranks_of_group(error.what(), from_, to_); };
  try {
    connect();
    what();
  } catch (const ccl::PeerLost& lost) {
    throw ccl::PeerLost(of_group(lost.rank), lost.step, said(lost));
  } catch (const ccl::Mismatch& mismatch) {
    throw ccl::Mismatch(of_group(mismatch.rank), said(mismatch));
  } catch (const ccl::Aborted& aborted) {
    throw ccl::Aborted(said(aborted), of_group(aborted.by));
  } catch (const ccl::DataCorrupted& corrupted) {
    throw ccl::DataCorrupted(of_group(corrupted.rank), said(corrupted));
  }
}

void PeerChannel::send(MessageHeader header, const void* data) {
  run([&] {
    comm_->send(&header, sizeof header, kernels::DType::u8, receiver);
    if (header.bytes > 0) comm_->send(data, header.bytes, kernels::DType::u8, receiver);
  });
}

MessageHeader PeerChannel::header() {
  MessageHeader header;
  run([&] { comm_->recv(&header, sizeof header, kernels::DType::u8, sender); });
  return header;
}

void PeerChannel::receive(void* data, std::uint64_t bytes) {
  run([&] {
    if (bytes > 0) comm_->recv(data, bytes, kernels::DType::u8, sender);
  });
}

void PeerChannel::abort() {
  store_.stop();
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (comm_) comm_->abort();
}

void PeerChannel::stop() {
  // A sender's worker may still be sending for a caller that did not wait, so it gets time to end. A receiver's worker
  // listens without end, so it is aborted at once.
  if (me_ == to_ || !worker_.ends_within(std::chrono::milliseconds(100))) abort();
  worker_.stop();
}

}  // namespace trellis::process_group
