"""trellis_room: a file dropped into a room is in the library, and registers what it has."""
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "tests"  # from /tmp programs may not be started everywhere
ROOM = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "cmake" / "room.cmake"


class Room(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=BUILD)
        self.root = pathlib.Path(self.folder.name)
        self.plant("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(house LANGUAGES CXX)\n"
                   f"set(CMAKE_CXX_STANDARD 20)\ninclude({ROOM})\nadd_subdirectory(below)\nadd_subdirectory(above)\n"
                   "add_executable(program main.cpp)\ntarget_include_directories(program PRIVATE ${PROJECT_SOURCE_DIR})\n"
                   "target_link_libraries(program PRIVATE room_below room_above)\n")
        self.plant("below/CMakeLists.txt", "trellis_room(NAME below)")
        self.plant("below/parts.h", "#pragma once\nint& parts();\nstruct Part { Part() { ++parts(); } };\n")
        self.plant("below/parts.cpp", '#include "below/parts.h"\nint& parts() { static int n = 0; return n; }\n')
        self.plant("above/CMakeLists.txt", "trellis_room(NAME above DEPENDS below)")
        self.plant("above/one.cpp", '#include "below/parts.h"\n#include "above/x.h"\nnamespace { const Part one; }\n')
        self.plant("above/x.h", "#pragma once\n")
        self.plant("main.cpp", '#include <cstdio>\n#include "below/parts.h"\nint main() { std::printf("%d", parts()); }\n')
        subprocess.run(["cmake", "-G", "Ninja", "-S", self.root, "-B", self.root / "build",
                        f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}"], check=True, capture_output=True)

    def tearDown(self):
        self.folder.cleanup()

    def plant(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def build(self):
        return subprocess.run(["cmake", "--build", self.root / "build"], capture_output=True, text=True)

    def parts(self):
        built = self.build()
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        return subprocess.run([self.root / "build" / "program"], capture_output=True, text=True).stdout

    def test_a_new_file_registers_its_part_without_an_edit(self):
        self.assertEqual(self.parts(), "1")
        self.plant("above/deeper/two.cpp", '#include "below/parts.h"\nnamespace { const Part two; }\n')
        self.assertEqual(self.parts(), "2")


if __name__ == "__main__":
    unittest.main()
