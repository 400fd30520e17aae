#include "ccl/transports/membership_notice.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "text/refuse.h"

namespace trellis::ccl {
namespace {

// A head, followed by one bit for each rank (lowest bit of the first byte first), the offer and the reason.
struct Head {
  std::uint8_t call, stage, ended, reason_bytes;
  std::uint32_t attempt, broken;
  std::int32_t blames, color, key;
  std::uint32_t offer_bytes;
};

std::size_t bits_bytes(Rank ranks) { return (static_cast<std::size_t>(ranks) + 7) / 8; }

std::byte bit_of(Rank r) { return std::byte{1} << r % 8; }

template <class Enum>
Enum known(std::uint8_t number, Enum last, const char* what) {
  if (number > static_cast<std::uint8_t>(last))
    text::refuse("a notice's {} is {}: expected 0 to {}", what, number, static_cast<std::uint8_t>(last));
  return static_cast<Enum>(number);
}

}  // namespace

const char* word(MembershipNotice::Call call) {
  constexpr const char* words[] = {"nothing", "split", "shrink"};
  return static_cast<std::size_t>(call) < std::size(words) ? words[static_cast<std::size_t>(call)] : "call";
}

std::size_t most_notice_bytes(Rank ranks) {
  return sizeof(Head) + bits_bytes(ranks) + most_offer_bytes + most_reason_bytes;
}

std::vector<std::byte> bytes_of(const MembershipNotice& n, Rank ranks) {
  if (n.offer.size() > most_offer_bytes)
    text::refuse("an offer of {} bytes: expected at most {}", n.offer.size(), most_offer_bytes);
  const std::string_view reason = std::string_view(n.reason).substr(0, most_reason_bytes);
  const Head head{.call = static_cast<std::uint8_t>(n.call),
                  .stage = static_cast<std::uint8_t>(n.stage),
                  .ended = static_cast<std::uint8_t>(n.ended),
                  .reason_bytes = static_cast<std::uint8_t>(reason.size()),
                  .attempt = n.attempt,
                  .broken = n.broken,
                  .blames = n.blames,
                  .color = n.wish.color,
                  .key = n.wish.key,
                  .offer_bytes = static_cast<std::uint32_t>(n.offer.size())};
  std::vector<std::byte> bytes(sizeof head + bits_bytes(ranks) + n.offer.size() + reason.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  for (const Rank r : n.members) bytes[sizeof head + static_cast<std::size_t>(r / 8)] |= bit_of(r);
  const auto offer_at = bytes.begin() + static_cast<std::ptrdiff_t>(sizeof head + bits_bytes(ranks));
  std::ranges::copy(std::as_bytes(std::span(reason)), std::ranges::copy(n.offer, offer_at).out);
  return bytes;
}

MembershipNotice notice_in(std::span<const std::byte> bytes, Rank ranks) {
  if (bytes.empty()) return {};
  Head head;
  const std::size_t offer_at = sizeof head + bits_bytes(ranks);
  if (bytes.size() < offer_at)
    text::refuse("a notice of {} bytes: expected {} or more for {} ranks", bytes.size(), offer_at, ranks);
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.offer_bytes > most_offer_bytes || head.reason_bytes > most_reason_bytes ||
      head.offer_bytes + std::size_t{head.reason_bytes} != bytes.size() - offer_at)
    text::refuse("a notice speaks of an offer of {} bytes and a reason of {}, and has {}: expected at most {} and {}",
                 head.offer_bytes, head.reason_bytes, bytes.size() - offer_at, most_offer_bytes, most_reason_bytes);
  if (head.blames < -1 || head.blames >= ranks)
    text::refuse("a notice blames rank {}: expected -1 to {}", head.blames, ranks - 1);
  MembershipNotice n{.call = known(head.call, MembershipNotice::Call::shrink, "call"),
                     .stage = known(head.stage, MembershipNotice::Stage::offers, "stage"),
                     .attempt = head.attempt,
                     .broken = head.broken,
                     .blames = head.blames,
                     .wish = {head.color, head.key}};
  for (Rank r = 0; r < ranks; ++r)
    if ((bytes[sizeof head + static_cast<std::size_t>(r / 8)] & bit_of(r)) != std::byte{0}) n.members.push_back(r);
  n.ended = known(head.ended, MembershipNotice::Ended::finalized, "end");
  const auto offer = bytes.subspan(offer_at, head.offer_bytes), reason = bytes.subspan(offer_at + head.offer_bytes);
  n.offer.assign(offer.begin(), offer.end());
  n.reason.assign(reinterpret_cast<const char*>(reason.data()), reason.size());
  return n;
}

}  // namespace trellis::ccl
