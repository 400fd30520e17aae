"""What a run's checkpoint is used for: text of bytes, and its loss on data."""
import json
import struct
import unittest

import program
from small_run import CONFIG, TEXT, sets, trellis


class Uses(program.Case):
    def setUp(self):
        self.root = self.new_folder()

    def right(self, *words):
        ran = trellis(*map(str, words))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def trained(self, **more):
        self.right("train", CONFIG, *sets(exp_manager__exp_dir=self.root, **more))
        [tag] = (self.root / "llama/checkpoints").glob("step_*")
        return tag

    def test_bytes_with_an_end_are_text(self):
        """As `trellis.train prepare --tokenizer bytes` makes them: 256 ends a document."""
        numbers = self.root / "ab.bin"
        numbers.write_bytes(struct.pack("<3H", 97, 98, 256) * 500)
        tag = self.trained(data__train_path=numbers, data__token_bytes=2, model__vocab_size=257, model__optim__lr=3e-2,
                           trainer__max_steps=30)
        generate = ["train", "generate", tag, "-n", "8"]
        self.assertEqual(self.right(*generate, "--tokens", "97"), "98 256 97 98 256 97 98 256\n")
        for tokenizer in ([], ["--tokenizer", "bytes"]):
            self.assertEqual(self.right(*generate, "-p", "a", *tokenizer), "ab\n")
        self.assertEqual(self.right(*generate, "-p", "a", "--end", "1"), "ababab\n")

    def test_perplexity_is_that_of_tokens_alone(self):
        tag = self.trained(model__architecture="bert", model__vocab_size=260, model__num_key_value_heads=4, trainer__max_steps=2)
        evaluate = ["train", "eval", tag, "--data", TEXT, "--set", "trainer.limit_val_batches=2"]
        said = json.loads(self.right(*evaluate, "--json"))
        self.assertGreater(said["loss"], 0)
        self.assertNotIn("perplexity", said)
        self.assertRegex(self.right(*evaluate), r"^loss [\d.]+: 2 sequences of 32 tokens of ")


if __name__ == "__main__":
    unittest.main()
