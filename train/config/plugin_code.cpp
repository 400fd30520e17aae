#include "train/config/plugin_code.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "kernels/types/crc32c.h"

namespace trellis::train {
namespace {

std::set<std::string>& files() {
  static std::set<std::string> all;
  return all;
}

std::string& first_fault_kept() {
  static std::string fault;
  return fault;
}

}  // namespace

bool note_foreign_code(const void* caller) {
  Dl_info here = {}, there = {};
  if (dladdr(reinterpret_cast<const void*>(&note_foreign_code), &here) == 0 || dladdr(caller, &there) == 0)
    return false;
  if (here.dli_fbase == there.dli_fbase) return false;
  files().insert(there.dli_fname);
  return true;
}

std::string foreign_code() {
  if (files().empty()) return "";
  std::uint32_t crc = 0;
  for (const std::string& file : files()) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    crc = kernels::crc32c(std::as_bytes(std::span(bytes)), crc);
  }
  return fmt::format("{:08x}", crc);
}

void keep_foreign_fault(std::string fault) {
  if (first_fault_kept().empty()) first_fault_kept() = std::move(fault);
}

void check_foreign_code() {
  if (!first_fault_kept().empty()) throw std::invalid_argument(first_fault_kept());
}

}  // namespace trellis::train
