#include "train/trainer/events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>

#include "kernels/types/crc32c.h"
#include "train/protobuf.h"

namespace trellis::train {
namespace {

std::string event_at(double seconds) {
  std::string event;
  put_key(event, 1, 1);  // wall_time
  put_little(event, std::bit_cast<std::uint64_t>(seconds));
  return event;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

std::uint32_t masked_crc(const std::string& bytes) {
  const std::uint32_t crc = kernels::crc32c(std::as_bytes(std::span(bytes)));
  return (crc >> 15 | crc << 17) + 0xA282'EAD8;
}

EventFile::EventFile(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  path_ = folder / fmt::format("events.out.tfevents.{:.0f}.trellis.{}", now(), getpid());
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path_.string());
  std::string event = event_at(now());
  put_bytes(event, 3, "brain.Event:2");
  record(event);
}

EventFile::~EventFile() { close(fd_); }

void EventFile::scalar(const std::string& tag, std::int64_t step, float value) {
  std::string one, summary, event = event_at(now());
  put_bytes(one, 1, tag);
  put_key(one, 2, 5);
  put_little(one, std::bit_cast<std::uint32_t>(value));
  put_bytes(summary, 1, one);
  put_number(event, 2, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);
  record(event);
}

void EventFile::record(const std::string& event) {
  std::string length, out;
  put_little(length, static_cast<std::uint64_t>(event.size()));
  out = length;
  put_little(out, masked_crc(length));
  out += event;
  put_little(out, masked_crc(event));
  if (write(fd_, out.data(), out.size()) != static_cast<ssize_t>(out.size()))
    throw std::system_error(errno, std::generic_category(), path_.string());
}

}  // namespace trellis::train
