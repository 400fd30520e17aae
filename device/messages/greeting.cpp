#include "device/messages/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>

namespace trellis::device {
namespace {

using kernels::bytes_of;
using kernels::Digest;
using kernels::HmacKey;

constexpr std::string_view magic = "trellisc";
constexpr std::size_t code_at = call_hello_bytes - sizeof(Digest);
constexpr auto welcome = std::byte{1};

template <std::integral Int>
void put(CallBytes& to, Int value) {  // the lowest byte first
  for (std::size_t i = 0; i < sizeof value; ++i)
    to.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}
void put(CallBytes& to, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) to.push_back(b);
}

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

Digest code_of(const HmacKey& secret, std::span<const std::byte> hello) {
  return secret.of({bytes_of("trellis call: hello"), hello.first(code_at)});
}
Digest listeners_proof(const HmacKey& secret, std::span<const std::byte> hello, std::span<const std::byte> nonce) {
  return secret.of({bytes_of("trellis call: listener"), hello, nonce});
}
Digest callers_proof(const HmacKey& secret, std::span<const std::byte> hello, std::span<const std::byte> nonce) {
  return secret.of({bytes_of("trellis call: caller"), hello, nonce});
}

CallHello hello_in(std::span<const std::byte> bytes) {
  CallHello hello;
  std::size_t at = magic.size();
  hello.kind = static_cast<CallKind>(number_at(bytes, at));
  for (std::int32_t* const number : {&hello.from, &hello.to, &hello.first_port})
    *number = static_cast<std::int32_t>(number_at(bytes, at += 4));
  std::ranges::copy(bytes.subspan(at + 4, hello.nonce.size()), hello.nonce.begin());
  return hello;
}

}  // namespace

CallBytes Welcome::take(std::span<const std::byte> arrived) {
  if (arrived.size() > wanted()) throw std::logic_error("more bytes of a greeting than were asked for");
  put(input_, arrived);
  const std::size_t seen = std::min(input_.size(), magic.size());
  if (!greeted_ && !std::ranges::equal(std::span(input_).first(seen), bytes_of(magic).first(seen)))
    throw Stranger("what it sent does not begin with a hello");
  if (wanted() != 0) return {};
  if (!greeted_) return answer();
  if (!kernels::equal_in_constant_time(input_, awaited_)) throw Stranger("it does not know the secret");
  proven_ = true;
  return {};
}

CallBytes Welcome::answer() {
  if (!kernels::equal_in_constant_time(std::span(input_).subspan(code_at), code_of(secret_, input_)))
    throw Stranger("it does not know the secret");
  hello_ = hello_in(input_);
  if (hello_.kind != kind_ || hello_.to != to_)
    throw Stranger(fmt::format("it calls {} {}, and this is {} {}", static_cast<std::uint32_t>(hello_.kind), hello_.to,
                               static_cast<std::uint32_t>(kind_), to_));
  std::array<std::byte, 32> nonce;
  kernels::fill_random(nonce);
  CallBytes out{welcome};
  put(out, nonce);
  put(out, listeners_proof(secret_, input_, nonce));
  awaited_ = callers_proof(secret_, input_, nonce);
  input_.clear();
  greeted_ = true;
  return out;
}

Calling::Calling(std::string_view secret, const CallHello& hello) : secret_(bytes_of(secret)) {
  std::array<std::byte, 32> nonce;
  kernels::fill_random(nonce);
  put(said_, bytes_of(magic));
  put(said_, static_cast<std::uint32_t>(hello.kind));
  for (const std::int32_t number : {hello.from, hello.to, hello.first_port}) put(said_, number);
  put(said_, nonce);
  put(said_, code_of(secret_, said_));
}

Digest Calling::proof(std::span<const std::byte, call_answer_bytes> answer) const {
  const auto nonce = answer.subspan<1, 32>();
  if (answer[0] != welcome ||
      !kernels::equal_in_constant_time(answer.last<sizeof(Digest)>(), listeners_proof(secret_, said_, nonce)))
    throw Stranger("it does not know the secret");
  return callers_proof(secret_, said_, nonce);
}

}  // namespace trellis::device
