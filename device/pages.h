// Moves the caller's own pages into a file that other processes can map, and back, without their addresses changing.
#pragma once

#include <cstddef>

namespace trellis::device {

inline constexpr std::size_t page = 4096;

// Whether all of these pages are the process's own data, as malloc and mmap give them: only these can be moved.
bool are_private(const std::byte* begin, std::size_t bytes);

// The pages become those of the file, which `file_pages` shows, with what they hold now. Nobody may write to them
// meanwhile. Throws system_error.
void move_to_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset, std::byte* file_pages);

bool are_of_file(const std::byte* begin, std::size_t bytes, int file, std::size_t offset);

// They become the process's own again, where they are still those of the file: who has given the memory back meanwhile
// may have got something else in its place. False: there was no memory for that, and they stay the file's.
bool move_from_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset);

}  // namespace trellis::device
