#include "kernels/dispatch/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trellis::kernels {

std::string build_id() {
  struct Search {
    std::uintptr_t inside;
    std::string id;
  } search{reinterpret_cast<std::uintptr_t>(&build_id), ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        bool here = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + p.p_vaddr;
          here = here || (p.p_type == PT_LOAD && s.inside >= begin && s.inside < begin + p.p_memsz);
        }
        for (int i = 0; here && i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type != PT_NOTE) continue;
          const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr);
          const char* const end = at + p.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char* const words = at + sizeof note + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID)
              for (std::uint32_t b = 0; b < std::min(note.n_descsz, 8U); ++b)
                s.id += fmt::format("{:02x}", static_cast<unsigned char>(words[b]));
            at = words + (note.n_descsz + 3) / 4 * 4;
          }
        }
        return here ? 1 : 0;
      },
      &search);
  return search.id.empty() ? "unnamed" : search.id;
}

}  // namespace trellis::kernels
