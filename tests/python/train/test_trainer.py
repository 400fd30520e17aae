"""trellis.train: the trainer and a job, with data, callbacks, schedules and groups of Python."""

import itertools

import numpy as np
import pytest
from trellis import train
from two_ranks import said_by_two_ranks

SMALL = {
    "model": {"architecture": "llama", "vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 48, "optim": {"lr": 1e-2}},
    "data": {"seq_length": 16, "global_batch_size": 2},
}  # fmt: skip


class Rows:
    """As torch.utils.data.Dataset: each token is a function of the one before."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        row = [i % 64]
        for _ in range(16):
            row.append((row[-1] * 5 + 3) % 64)
        return np.array(row)


def losses(history):
    return [record.loss for record in history]


def trainer(**more):
    return train.Trainer(SMALL, enable_progress_bar=False, **more)


def test_every_form_of_a_sample_is_the_same():
    rows = Rows()

    class HuggingFace(Rows):
        def __getitem__(self, i):
            row = rows[i]
            return {"input_ids": row[:-1], "labels": np.where(np.arange(16) < 1, -100, row[:-1])}

    pairs = [(rows[i][:-1], rows[i][1:]) for i in range(40)]
    batches = [np.stack([rows[i], rows[i + 1]]) for i in range(0, 40, 2)]
    expected = losses(trainer(max_steps=25).fit(train_dataloaders=rows))
    assert expected[-1] < 0.7 * expected[0]
    for data in (pairs, batches):
        assert losses(trainer(max_steps=25).fit(train_dataloaders=data)) == expected

    class Stream:
        def __iter__(self):
            return iter(pairs)

    assert losses(trainer(max_steps=25).fit(train_dataloaders=Stream())) == expected
    # The last position has no label, so the mean is of 15.
    assert losses(trainer(max_steps=1).fit(train_dataloaders=HuggingFace()))[0] == pytest.approx(expected[0], rel=0.05)


def test_how_often_figures_are_written_is_said_by_name(tmp_path):
    history = trainer(max_steps=7, log_every_n_steps=3, default_root_dir=tmp_path).fit(train_dataloaders=Rows())
    (written,) = tmp_path.rglob("metrics.csv")
    steps = [int(line.split(",")[0]) for line in written.read_text().splitlines() if line[:1].isdigit()]
    assert steps == [3, 6, 7] and len(history) == 7


def test_lines_are_as_many_as_the_configuration_says(capsys):
    train.Trainer(SMALL | {"trainer.log_every_n_steps": 3}, max_steps=7).fit(train_dataloaders=Rows())
    lines = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert lines == ["3/7", "6/7", "7/7"]


class Validated(train.Callback):
    def __init__(self):
        self.seen = []

    def on_validation_end(self, trainer, module):
        self.seen.append(trainer.callback_metrics["val_loss"])


def validated(data, **more):
    told = Validated()
    made = trainer(max_steps=2, val_check_interval=1, callbacks=[told], **more)
    made.fit(train_dataloaders=Rows(), val_dataloaders=data)
    return told.seen


class Loader:
    """As torch.utils.data.DataLoader: its length is that of its batches, and nothing is indexed."""

    def __init__(self, rows, batch, length=True):
        self.batches = [np.stack(rows[i : i + batch]) for i in range(0, len(rows), batch)]
        self.given = 0
        if length:
            self.__class__ = type("Loader", (Loader,), {"__len__": lambda self: len(self.batches)})

    def __iter__(self):
        for batch in self.batches:
            self.given += 1
            yield batch


class Indexed:
    """Batches of which any index gives one, as random crops do."""

    def __init__(self, rows, size):
        self.batches = [np.stack(rows[i : i + size]) for i in range(0, len(rows), size)]

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


class StartsOver(Indexed):
    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        self.at += 1
        if self.at > len(self):
            raise StopIteration
        return self[self.at - 1]


def test_validation_sees_every_row_of_batches():
    rows = [Rows()[i] for i in range(12)]
    expected = validated(rows)
    assert len(expected) == 2
    for data in (Loader(rows, 4), Loader(rows, 12), Loader(rows, 12).batches, Loader(rows, 5, False)):
        assert validated(data) == expected
    assert validated(Loader(rows, 4), limit_val_batches=0.5) == validated(rows[:6])
    for data in (Indexed(rows, 4), StartsOver(rows, 4)):
        assert validated(data) == expected
    with pytest.raises(ValueError, match="validation data: 1 samples; expected a batch at least"):
        validated(rows[:1])


def test_validation_without_a_length_ends():
    rows = [Rows()[i] for i in range(12)]

    class Endless:
        def __iter__(self):
            return itertools.cycle(rows)

    data = Loader(rows, 1, False)
    assert validated(data) == validated(rows)
    assert data.given <= 3 * 12
    assert validated(Endless(), limit_val_batches=2) == validated(rows[:4])
    with pytest.raises(ValueError, match="can be iterated over once: expected something"):
        validated(iter(rows))


def test_a_module_of_lightnings_shape(capsys):
    told = []

    class Guide(train.Module):
        def training_step(self, batch, batch_idx):
            raise AssertionError("there is none to call")

        def configure_optimizers(self):
            return [{"name": "adamw", "lr": 1.0}], [{"scheduler": lambda step: 1e-2 / step, "interval": "step"}]

        def on_train_start(self):
            told.append("start")

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.log("loss_again", outputs.loss, prog_bar=True)
            told.append((batch_idx, self.global_step, outputs.learning_rate))

        def on_train_end(self):
            told.append("end")

    class Rest(train.DataModule):
        def train_dataloader(self):
            return Rows()

    made = train.Trainer(SMALL, max_steps=2)
    made.fit(model=Guide(), datamodule=Rest(), ckpt_path=None)
    assert told == ["start", (0, 1, 1e-2), (1, 2, 5e-3), "end"]
    assert made.callback_metrics["loss_again"] == made.callback_metrics["loss"]
    assert "Guide.training_step is not called" in capsys.readouterr().out


def test_hooks_at_a_checkpoint_have_lightnings_arguments_or_fewer(tmp_path, capsys):
    told = []

    class OfModule(train.Module):
        def on_save_checkpoint(self, checkpoint):
            told.append(("module", checkpoint))

        def on_train_batch_start(self, batch, batch_idx):
            told.append(("begins", batch_idx))

    class Keeps(train.Module):
        def on_save_checkpoint(self, checkpoint):
            checkpoint |= {"mine": 3, 7: 4}

    class OfCallback(train.Callback):
        def on_save_checkpoint(self, trainer, pl_module, checkpoint):
            told.append(("callback", checkpoint))

    class Without(train.Callback):
        def on_save_checkpoint(self, trainer, module):
            told.append(("without", trainer.global_step))

    class Nothing(train.Callback):
        def on_save_checkpoint(self):
            told.append("nothing")

    class Wrong(train.Callback):
        def on_save_checkpoint(self, trainer, module, checkpoint, more):
            raise AssertionError("nobody gives as many")

    def fit(*callbacks, module=None):
        made = train.Trainer(SMALL, max_steps=1, default_root_dir=tmp_path, callbacks=callbacks)
        made.fit(module or OfModule(), train_dataloaders=Rows())

    fit(OfCallback(), Without(), Nothing())
    assert told == [("begins", 0), ("module", {}), ("callback", {}), ("without", 1), "nothing"]
    assert "is not kept" not in capsys.readouterr().out
    fit(module=Keeps())
    assert "what on_save_checkpoint adds to a checkpoint (mine, 7) is not kept" in capsys.readouterr().out
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'more'"):
        fit(Wrong())


def test_attention_that_is_not_cut_is_told(capsys):
    cut = {"data.reset_attention_mask": True}
    train.Trainer(SMALL, max_steps=1, changes=cut).fit(train_dataloaders=Rows())
    assert "data.reset_attention_mask: attention is not cut within samples of one's own" in capsys.readouterr().out
    train.Trainer(SMALL, max_steps=1).fit(train_dataloaders=Rows())
    assert "is not cut" not in capsys.readouterr().out


def test_what_is_no_optimizer_of_the_librarys_is_refused():
    class Several(train.Module):
        def configure_optimizers(self):
            return [{"lr": 1e-3}, {"lr": 1e-4}], []

    class Foreign(train.Module):
        def configure_optimizers(self):
            return object()

    with pytest.raises(ValueError, match="several optimizers"):
        trainer(max_steps=1).fit(Several())
    with pytest.raises(TypeError, match="returned object: expected a dict of keys of model.optim"):
        trainer(max_steps=1).fit(Foreign())


def test_callbacks_are_told_in_turn_and_runs_go_on(tmp_path):
    told = []

    class Told(train.Callback):
        def on_train_start(self, trainer, module):
            told.append(("start", trainer.global_step))

        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            assert trainer.global_step == batch_idx + 1 == outputs.step
            assert trainer.callback_metrics["loss"] == outputs.loss
            module.log("twice", 2 * outputs.loss)
            name = "model.layers.0.mlp.down_proj.weight"
            told.append(("end", trainer.global_step, float(np.abs(trainer.job.values(name)).sum()) > 0))

        def on_save_checkpoint(self, trainer, module, checkpoint=None):
            told.append(("saved", trainer.global_step))

        def on_train_end(self, trainer, module):
            told.append(("over", trainer.global_step))

    class Stops(train.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            trainer.should_stop = trainer.global_step == 4

    whole = losses(trainer(max_steps=6).fit(train_dataloaders=Rows()))
    runs = {"exp_manager.resume_if_exists": True, "name": "run"}
    first = trainer(max_steps=6, default_root_dir=tmp_path, changes=runs, callbacks=[Told(), Stops()])
    begun = losses(first.fit(train_dataloaders=Rows()))
    assert told == [("start", 0), *[("end", i, True) for i in range(1, 5)], ("saved", 4), ("over", 4)]
    assert first.job is None and first.callback_metrics["twice"] == 2 * begun[-1]
    checkpoint = tmp_path / "run" / "checkpoints" / "step_00000004"
    again = trainer(max_steps=6).fit(train_dataloaders=Rows(), ckpt_path=checkpoint)
    assert begun + losses(again) == whole
    rest = trainer(max_steps=6, default_root_dir=tmp_path, changes=runs).fit(train_dataloaders=Rows())
    assert begun + losses(rest) == whole
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    with pytest.raises(ValueError, match=r"data.train_path has .*, was .*Rows"):
        trainer(max_steps=8, default_root_dir=tmp_path, changes=runs).fit(train_dataloaders=[Rows()[3]] * 40)


def test_a_module_says_how_it_is_optimized():
    class Mine(train.Module):
        def configure_model(self):
            return {"model.num_layers": 1}

        def configure_optimizers(self):
            return {"name": "sgd", "momentum": 0.0, "lr_scheduler": lambda step: 0.1 / step,
                    "groups": lambda name: {"lr_scale": 0} if "mlp" in name else None}  # fmt: skip

        def on_train_start(self, trainer, module):
            self.first = self.values(trainer)

        def on_train_end(self, trainer, module):
            self.last = self.values(trainer)

        def values(self, trainer):
            return {each[0]: trainer.job.values(each[0]) for each in trainer.job.parameters}

    class Data(train.DataModule):
        def train_dataloader(self):
            return Rows()

        def val_dataloader(self):
            return Rows()

    told = Validated()
    mine = Mine()
    history = trainer(max_steps=4, val_check_interval=2, limit_val_batches=3, callbacks=[told]).fit(mine, Data())
    assert [record.learning_rate for record in history] == [0.1 / step for step in range(1, 5)]
    assert len(told.seen) == 2 and told.seen[1] < told.seen[0]
    assert "model.layers.1.mlp.up_proj.weight" not in mine.first
    for name, values in mine.first.items():
        assert np.array_equal(values, mine.last[name]) == ("mlp" in name), name


def test_early_stopping():
    stopping = train.EarlyStopping("loss", min_delta=100, patience=2)
    assert len(trainer(max_steps=9, callbacks=[stopping]).fit(train_dataloaders=Rows())) == 3


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: train.Trainer({"model.hiden_size": 3}), ValueError, "did you mean 'model.hidden_size'"),
        (lambda: trainer(max_steps=-1), ValueError, "trainer.max_steps"),
        (lambda: train.Job(SMALL).set_batch(0, [[64] * 16], [[1] * 16]), ValueError, "tokens have 64: expected"),
        (lambda: train.Job(SMALL).set_batch(2, [[1] * 16], [[1] * 16]), ValueError, "micro-batch 2: expected 0 to 1"),
        (lambda: train.Job(SMALL).set_batch(0, [[1] * 9], [[1] * 9]), ValueError, "tokens are 1 x 9: expected 1 x 16"),
        (lambda: train.Job(SMALL).values("none"), ValueError, "this rank has no parameter 'none'"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=[]), ValueError, "data has no samples"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=[[0.5] * 17]), ValueError, "expected whole numbers"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=[[70] * 17]), ValueError, "tokens of step 1 have 70"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=[[2**33 + 5] * 17]), ValueError, "tokens have 8589934597"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=[[1] * 40]), ValueError, "at most data.seq_length"),
        (lambda: trainer(max_steps=1).fit(train_dataloaders=3), TypeError, "expected something to index"),
        (lambda: trainer(max_steps=1).fit(), ValueError, "data.train_path is missing"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error) as raised:
        made = call()
        if isinstance(made, train.Trainer):
            made.fit(train_dataloaders=Rows())
    assert words in str(raised.value)


def test_an_error_of_a_callback_ends_the_run():
    class Wrong(train.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trainer(max_steps=3, callbacks=[Wrong()]).fit(train_dataloaders=Rows())


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from test_trainer import Rows, SMALL, losses
from trellis import train
t = train.Trainer(SMALL, max_steps=5, enable_progress_bar=False,
                  changes={{"distributed_strategy.tensor_model_parallel_size": 2}})
print(t.world_size, *losses(t.fit(train_dataloaders=Rows()))) if t.is_global_zero else t.fit(train_dataloaders=Rows())
"""


def test_ranks_train_as_one(tmp_path):
    said = said_by_two_ranks(tmp_path, SCRIPT).split()
    assert said[0] == "2"
    expected = losses(trainer(max_steps=5).fit(train_dataloaders=Rows()))
    assert [float(loss) for loss in said[1:]] == pytest.approx(expected, rel=1e-5)
