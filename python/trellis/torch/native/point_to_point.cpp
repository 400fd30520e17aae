#include "trellis/torch/native/point_to_point.h"

#include <algorithm>
#include <cstring>

#include "trellis/torch/native/peer_channel.h"

namespace trellis::process_group {

PointToPoint::PointToPoint(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<const Membership> group,
                           ccl::Config config)
    : store_(std::move(store)), group_(std::move(group)), config_(std::move(config)) {}

// Returns the channel. The first call for it makes it, and if it leads to this rank, starts to listen on it. Call it
// with the lock held.
const std::shared_ptr<PeerChannel>& PointToPoint::channel(int from, int to) {
  auto& channel = channels_[{from, to}];
  if (!channel) {
    channel = std::make_shared<PeerChannel>(store_, *group_, from, to, config_);
    if (to == group_->rank) channel->worker().later([this, from, way = channel.get()] { listen(from, *way); });
  }
  return channel;
}

void PointToPoint::send(Pending work, at::Tensor tensor, int to, int tag) {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw std::runtime_error("the process group has been shut down");
  const std::shared_ptr<PeerChannel> way = channel(group_->rank, to);
  work->on_timeout([weak = std::weak_ptr(way)] {  // by a thread that outlives the channels
    if (const auto late = weak.lock()) late->abort();
  });
  way->worker().later([work, tensor, tag, way = way.get()] {
    work->perform([&] {
      const FlatTensor flat(tensor);
      way->send({tag, flat.bytes(), static_cast<std::int64_t>(tensor.scalar_type())}, flat.data());
    });
  });
}

void PointToPoint::receive(Pending work, at::Tensor tensor, int from, int tag) {
  std::optional<Message> here;
  std::exception_ptr lost;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw std::runtime_error("the process group has been shut down");
    const Posted posted{work, tensor, from, tag};
    const auto found = std::ranges::find_if(arrived_, [&](const Message& m) { return matches(posted, m.from, m.tag); });
    if (found != arrived_.end()) {
      here = std::move(*found);
      arrived_.erase(found);
    } else if (from >= 0 && lost_.contains(from)) {
      lost = lost_[from];
    } else if (from < 0 && !lost_.empty() && static_cast<int>(lost_.size()) == group_->size - 1) {
      lost = lost_.begin()->second;
    } else {
      waiting_.push_back(posted);
      work->on_timeout([this, given = work.get()] { withdraw(given); });
      for (int rank = 0; rank < group_->size; ++rank)
        if (rank != group_->rank && (from < 0 || from == rank)) channel(rank, group_->rank);
      posted_.notify_all();
    }
  }
  if (lost) work->perform([&] { std::rethrow_exception(lost); });
  if (here) give({work, tensor, from, tag}, *here);
}

std::optional<PointToPoint::Posted> PointToPoint::take(int from, int tag) {
  const auto found = std::ranges::find_if(waiting_, [&](const Posted& p) { return matches(p, from, tag); });
  if (found == waiting_.end()) return {};
  Posted taken = std::move(*found);
  waiting_.erase(found);
  return taken;
}

bool PointToPoint::others_wait_for(int from) const {
  return std::ranges::any_of(waiting_, [&](const Posted& p) { return p.from < 0 || p.from == from; });
}

// Gives the rank's next message to the receive that asks for it. If none does, waits for one, unless another receive
// waits for a later message of the rank: then this one is put aside.
void PointToPoint::deliver_next(int from, PeerChannel& way) {
  const MessageHeader header = way.header();
  const int tag = static_cast<int>(header.tag);
  std::optional<Posted> wanted;
  {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [&] { return stopping_ || (wanted = take(from, tag)) || others_wait_for(from); });
    if (stopping_) throw ccl::Aborted("the process group has been shut down");
  }
  const auto type = static_cast<at::ScalarType>(header.type);
  if (wanted && wanted->tensor.nbytes() == header.bytes && wanted->tensor.scalar_type() == type) {
    wanted->work->from(from);
    FlatTensor flat(wanted->tensor);
    try {
      way.receive(flat.data(), header.bytes);
    } catch (...) {
      wanted->work->perform([] { throw; });
      throw;
    }
    wanted->work->perform([&] { flat.give_back(); });
    return;
  }
  Message message{from, tag, type, std::vector<std::byte>(header.bytes)};
  way.receive(message.bytes.data(), header.bytes);
  if (!wanted) {
    const std::lock_guard lock(mutex_);
    wanted = take(from, tag);  // it may have been asked for by now
    if (!wanted) {
      arrived_.push_back(std::move(message));
      return;
    }
  }
  give(*wanted, message);
}

void PointToPoint::give(const Posted& posted, const Message& message) const {
  posted.work->from(message.from);
  posted.work->perform([&] {
    const at::Tensor& tensor = posted.tensor;
    if (tensor.scalar_type() != message.type || tensor.nbytes() != message.bytes.size())
      throw ccl::Mismatch(message.from, c10::str("it sent ", message.bytes.size(), " bytes of ", message.type, ", and ",
                                                 group_->named(group_->rank), " receives ", tensor.nbytes(),
                                                 " bytes of ", tensor.scalar_type()));
    FlatTensor(tensor).fill(message.bytes.data());
  });
}

void PointToPoint::listen(int from, PeerChannel& way) {
  try {
    for (;;) deliver_next(from, way);
  } catch (...) {
    lose(from, std::current_exception());
  }
}

// Fails the receives from a lost rank, and those from any rank when no rank is left.
void PointToPoint::lose(int from, std::exception_ptr error) {
  std::vector<Posted> failed;
  {
    const std::lock_guard lock(mutex_);
    lost_[from] = error;
    const bool all = static_cast<int>(lost_.size()) == group_->size - 1;
    std::erase_if(waiting_, [&](const Posted& p) {
      const bool fails = p.from == from || (p.from < 0 && all);
      if (fails) failed.push_back(p);
      return fails;
    });
  }
  for (const Posted& posted : failed) posted.work->perform([&] { std::rethrow_exception(error); });
}

void PointToPoint::withdraw(const TorchWork* work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Posted& p) { return p.work.get() == work; });
}

void PointToPoint::stop() {
  std::map<std::pair<int, int>, std::shared_ptr<PeerChannel>> channels;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    channels.swap(channels_);
    posted_.notify_all();
  }
  for (const auto& [ends, channel] : channels) channel->stop();
  std::deque<Posted> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const Posted& posted : waiting)
    posted.work->perform([] { throw ccl::Aborted("the process group has been shut down"); });
}

}  // namespace trellis::process_group
