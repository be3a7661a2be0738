"""Which inputs forward takes, learnt by running it: orientation, whole numbers, states, sizes that cannot move."""

import torch
from torch import nn

from trtconv.export.signature.likely_inputs import likely_inputs
from trtconv.export.signature.search import search_inputs


class Frames(nn.Module):
    """The convolution says 40 channels in front; forward takes them behind, and lengths that it compares and halves."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(40, 8, 3, stride=2, padding=1)
        self.rnn = nn.GRU(8, 6, batch_first=True)

    def forward(self, feats, sizes):
        x = self.conv(feats.transpose(1, 2)).relu().transpose(1, 2)
        mask = torch.arange(x.shape[1])[None] < (sizes // 2)[:, None]
        return self.rnn(x * mask[..., None])[0]


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(13, 6, batch_first=True)

    def forward(self, x, n):
        packed = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 400, stride=160)

    def forward(self, audio):
        return self.conv(audio.unsqueeze(1)).mean(-1)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 8, num_layers=2, batch_first=True)

    def forward(self, x, h):
        return self.rnn(x, h)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 26 * 26, 10))

    def forward(self, x):
        return self.net(x)


class Padded(nn.Module):
    """torch's fast path takes no mask of floats; nobody who watches sees it."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.project, self.encoder = nn.Linear(80, 16), nn.TransformerEncoder(layer, 1)

    def forward(self, x, pad):
        return self.encoder(self.project(x), src_key_padding_mask=pad)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.scale = nn.Embedding(50, 8), nn.Parameter(torch.ones(8))

    def forward(self, other, thing):
        return self.table(thing) * self.scale + other


class Refuses(nn.Module):
    def forward(self, x, y):
        if x.shape[0] != 777:
            raise ValueError("wants 777")
        return x + y


def inputs_of(module, tmp_path):
    search = search_inputs(module, likely_inputs(module), tmp_path)
    return None if search.inputs is None else [str(s) for s in search.inputs]


def test_channels_stand_where_forward_takes_them_and_lengths_are_whole(tmp_path):
    assert inputs_of(Frames(), tmp_path) == ["feats:float32[N,T,40]", "sizes:int64[N]=1:8"]
    assert inputs_of(Packed(), tmp_path) == ["x:float32[N,T,13]", "n:int64[N]=1:8"]


def test_sound_needs_more_samples_than_frames_are_tried(tmp_path):
    assert inputs_of(Sound(), tmp_path) == ["audio:float32[N,T]"]


def test_a_state_has_the_shape_that_the_layer_asks_for(tmp_path):
    assert inputs_of(Stateful(), tmp_path) == ["x:float32[N,T,6]", "h:float32[2,N,8]"]


def test_a_size_that_cannot_move_is_a_number(tmp_path):
    assert inputs_of(Classifier(), tmp_path) == ["x:float32[N,1,28,28]"]


def test_what_runs_while_nobody_watches_counts(tmp_path):
    assert inputs_of(Padded(), tmp_path) == ["x:float32[N,T,80]", "pad:bool[N,T]"]


def test_indices_are_those_that_are_looked_up_whatever_their_name(tmp_path):
    other, thing = inputs_of(Words(), tmp_path)
    assert thing == "thing:int64[N,T]=0:49"
    assert other.startswith("other:float32[")


def test_what_never_runs_ends_in_what_it_said(tmp_path):
    search = search_inputs(Refuses(), likely_inputs(Refuses()), tmp_path)
    assert search.inputs is None
    assert search.last.error == "ValueError: wants 777"
    assert search.last.where.startswith("test_search.py:") or "test_search.py:" in search.last.where
