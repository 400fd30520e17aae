// Moves the caller's own pages into a file that other processes can map, and back, without changing their addresses.
#pragma once

#include <cstddef>

namespace trellis::device {

inline constexpr std::size_t page = 4096;

// Whether all of these pages are the process's own data, as from malloc and mmap. Only such pages can be moved.
bool are_private(const std::byte* begin, std::size_t bytes);

// Replaces the pages by those of the file, which `file_pages` maps; contents are kept. Nobody may write to them
// meanwhile. Throws system_error.
void move_to_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset, std::byte* file_pages);

bool are_of_file(const std::byte* begin, std::size_t bytes, int file, std::size_t offset);

// Makes the pages private again, if they still belong to the file: if the caller has freed them meanwhile, something
// else may be mapped there. False: out of memory; they stay in the file.
bool move_from_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset);

}  // namespace trellis::device
