#include "net/greeting.h"

#include <algorithm>

namespace trellis::net {
namespace {

std::span<const std::byte> code_in(const Bytes& hello) { return std::span(hello).last<sizeof(Digest)>(); }

// Throws unless the verdict, the first byte of the listener's answer, is a welcome.
void expect_welcome(std::byte verdict) {
  if (verdict != static_cast<std::byte>(Verdict::welcome))
    throw ProtocolError("a listener that refuses the hello", static_cast<Verdict>(verdict));
}

}  // namespace

Digest Transcript::code_of_hello() const {
  return secret.of({bytes_of(greeting->label), bytes_of(": hello"),
                    std::span(hello).first(greeting->hello_bytes() - sizeof(Digest))});
}

Digest Transcript::proof(Side of) const {
  const std::string_view name = of == Side::caller ? ": caller" : ": listener";
  return secret.of({bytes_of(greeting->label), bytes_of(name), hello, nonce});
}

Digest Transcript::key(Side from) const {
  const std::string_view name = from == Side::caller ? ": caller's frames" : ": listener's frames";
  return secret.of({bytes_of(greeting->label), bytes_of(name), hello, nonce});
}

std::size_t GreetingListener::wanted() const {
  if (proven_) return 0;
  return (transcript_ ? proof_bytes : greeting_->hello_bytes()) - input_.size();
}

void GreetingListener::take(std::span<const std::byte> arrived) {
  if (arrived.size() > wanted()) throw std::logic_error("more bytes of a greeting than were asked for");
  put(input_, arrived);
  if (!transcript_) {
    const std::size_t seen = std::min(input_.size(), greeting_->magic.size());
    if (!std::ranges::equal(std::span(input_).first(seen), bytes_of(greeting_->magic).first(seen)))
      throw ProtocolError("a stranger: what it sent does not begin with a hello");
  } else if (wanted() == 0) {
    if (!equal_in_constant_time(input_, transcript_->proof(Side::caller)))
      throw ProtocolError("a client that does not know the secret");
    proven_ = true;
  }
}

std::span<const std::byte> GreetingListener::terms() const {
  return std::span(transcript_ ? transcript_->hello : input_).subspan(greeting_->magic.size(), greeting_->terms);
}

Bytes GreetingListener::answer(std::string_view secret) {
  Transcript t{greeting_, HmacKey(bytes_of(secret)), std::move(input_)};
  input_ = {};
  if (!equal_in_constant_time(code_in(t.hello), t.code_of_hello()))
    throw ProtocolError("a client that does not know the secret", Verdict::other_secret);
  fill_random(t.nonce);
  Bytes answer;
  put(answer, static_cast<std::uint8_t>(Verdict::welcome));
  put(answer, t.nonce);
  put(answer, t.proof(Side::listener));
  transcript_ = std::move(t);
  return answer;
}

GreetingCaller::GreetingCaller(const Greeting& g, std::string_view secret, std::span<const std::byte> terms)
    : transcript_{&g, HmacKey(bytes_of(secret)), {}} {
  Nonce nonce;
  fill_random(nonce);
  Bytes& hello = transcript_.hello;
  hello.reserve(g.hello_bytes());
  put(hello, bytes_of(g.magic));
  put(hello, terms);
  put(hello, nonce);
  put(hello, transcript_.code_of_hello());
}

Digest GreetingCaller::proof(std::span<const std::byte, answer_bytes> answer) {
  expect_welcome(answer[0]);
  std::ranges::copy(answer.subspan<1, sizeof(Nonce)>(), transcript_.nonce.begin());
  if (!equal_in_constant_time(answer.last<sizeof(Digest)>(), transcript_.proof(Side::listener)))
    throw ProtocolError("a listener that does not know the secret");
  return transcript_.proof(Side::caller);
}

bool greet(const Descriptor& socket, GreetingCaller& calling, const WaitLimit& wait) {
  std::array<std::byte, answer_bytes> answer;
  const auto [verdict, rest] = std::pair(std::span(answer).first<1>(), std::span(answer).subspan<1>());
  if (!send_before(socket, calling.hello(), wait) || !receive_before(socket, verdict, wait)) return false;
  expect_welcome(answer[0]);
  return receive_before(socket, rest, wait) && send_before(socket, calling.proof(answer), wait);
}

}  // namespace trellis::net
