#include "ccl/transports/libfabric/lanes/piece_retransmission.h"

#include <algorithm>

namespace trellis::ccl::libfabric {
namespace {

constexpr std::chrono::milliseconds first_patience{100}, longest_patience{2000};  // for the answer to a request

}  // namespace

PieceRetransmission::PieceRetransmission(DataPath& path, Rank to, int lane)
    : path_(path), to_(to), lane_(lane), patience_(first_patience) {}

void PieceRetransmission::begin(std::uint32_t message) {
  drop();
  message_ = message;
}

void PieceRetransmission::drop() {
  doubtful_.clear();
  gone_.clear();
}

void PieceRetransmission::drop_rail(int rail) {
  std::erase_if(gone_, [&](const PieceOut& p) {
    if (p.rail != rail) return false;
    failed(p);
    return true;
  });
  for (Doubtful& d : doubtful_) d.piece.grant.drop(rail);
}

void PieceRetransmission::granted(std::uint32_t message, const Grant& g) {
  if (message != message_) return;
  for (Doubtful& d : doubtful_)
    if (d.piece.grant.first == g.first) d.piece.grant = g;
}

// Ignores answers to earlier requests: those pieces may already have been retransmitted.
void PieceRetransmission::answered(const PacketHeader& p, std::span<const std::uint32_t> lacking) {
  if (p.number != message_ || p.mark != requests_) return;
  std::erase_if(doubtful_, [&](Doubtful& d) {
    if (d.request != requests_) return false;
    d.lacking = std::ranges::find(lacking, d.piece.grant.first + d.piece.piece) != lacking.end();
    if (!d.lacking) path_.traffic().had_arrived(to_, d.piece.rail);
    return !d.lacking;
  });
  patience_ = first_patience;
}

void PieceRetransmission::begin_again() {
  for (Doubtful& d : doubtful_) d.request = 0;
}

void PieceRetransmission::moved(const std::byte* from, const std::byte* to) {
  for (PieceOut& p : gone_) p.bytes.data = to + (static_cast<const std::byte*>(p.bytes.data) - from);
}

void PieceRetransmission::has_arrived() {
  for (const Doubtful& d : doubtful_) path_.traffic().had_arrived(to_, d.piece.rail);
  doubtful_.clear();
}

void PieceRetransmission::advance(const std::function<bool(PieceOut)>& post) {
  std::erase_if(doubtful_, [&](const Doubtful& d) { return d.lacking && post(d.piece); });
  ask();
}

// Asks the receiver which pieces it lacks, of those that can no longer arrive. The list of these is made only once: the
// control link's thread may meanwhile hear that the receiver has left a further rail, and a piece that is marked as
// asked about, but is not in the request, would be taken for arrived.
void PieceRetransmission::ask() {
  const Deadline now = Clock::now();
  std::vector<Doubtful*> about;
  for (Doubtful& d : doubtful_)
    if (!d.lacking && path_.is_over(to_, d.piece.rail)) about.push_back(&d);
  const bool fresh = std::ranges::any_of(about, [](const Doubtful* d) { return d->request == 0; });
  if (about.empty() || (!fresh && now - requested_ < patience_)) return;
  const std::size_t most = std::min(most_pieces_asked, path_.eager_bytes() / sizeof(std::uint32_t));
  about.resize(std::min(about.size(), most));
  std::vector<std::uint32_t> pieces;
  for (const Doubtful* const d : about) pieces.push_back(d->piece.grant.first + d->piece.piece);
  const PacketHeader p{.kind = PacketHeader::Kind::ask,
                       .lane = static_cast<std::uint8_t>(lane_),
                       .number = message_,
                       .mark = requests_ + 1,
                       .bytes = pieces.size()};
  if (!path_.send(to_, p, pieces.data(), pieces.size() * sizeof pieces[0])) return;
  ++requests_;
  requested_ = now;
  patience_ = std::min(2 * patience_, longest_patience);
  for (Doubtful* const d : about) d->request = requests_;
}

}  // namespace trellis::ccl::libfabric
