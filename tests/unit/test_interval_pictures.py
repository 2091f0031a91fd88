"""A race among the barriers of its block: which executions meet, what stands between, how it is drawn."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_lsp.barrier_intervals import IntervalPicture, meeting_of, race_on
from cuda_lsp.cli import main
from cuda_lsp.config import Settings
from cuda_lsp.report.interval_picture import description, svg, table
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.interval_looks import interval_picture

DEMO = Path(__file__).resolve().parents[2] / "fixtures/demo"

REDUCE = """__global__ void reduce(float *out, const float *in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
  }
  if (t == 0) out[0] = s[0];
}
void launch(float *o, float *i) { reduce<<<1, 256>>>(o, i); }
"""
SUM = """__global__ void total(int *sum, const int *in) {
  *sum += in[blockIdx.x * blockDim.x + threadIdx.x];
}
void launch(int *s, int *i) { total<<<4, 64>>>(s, i); }
"""
BLOCKS = """__global__ void blocks(int *a) {
  if (threadIdx.x == 0) a[blockIdx.x] = a[blockIdx.x + 1];
}
void launch(int *a) { blocks<<<64, 64>>>(a); }
"""
CALLED = """__device__ void put(float *s, int t, float v) { s[t] = v; }
__global__ void turn(float *out, const float *in) {
  extern __shared__ float memory[];
  float *mine = memory;
  put(mine, threadIdx.x, in[threadIdx.x]);
  out[threadIdx.x] = mine[127 - threadIdx.x];
}
void launch(float *o, float *i) { turn<<<1, 128, 512>>>(o, i); }
"""


def look(text: str, line: int) -> IntervalPicture:
    """The picture of the race on a line."""
    analyzer, path = Analyzer(Settings()), Path("/p/a.cu")
    try:
        race = race_on(analyzer.check(path, text), line)
        meeting = meeting_of(race) if race is not None else None
        found = interval_picture(path, meeting, analyzer) if meeting is not None else None
    finally:
        analyzer.shutdown()
    assert found is not None
    return found


def test_a_race_from_one_round_to_the_next_is_shown_as_executed() -> None:
    picture = look(REDUCE, 7)
    (interval,) = picture.intervals
    assert (interval.number, interval.ends) == (2, None)
    assert picture.begins is not None and picture.begins.range.start.line == 5
    raced = [(step.site.text, step.racing) for step in interval.steps if any(step.racing)]
    assert raced == [("s[t]", (True, False)), ("s[t + d]", (False, True))]  # written, then read a round later
    assert "no barrier between them" in description(picture) and not picture.ordered


def test_one_statement_of_both_threads_is_one_row() -> None:
    picture = look(SUM, 2)
    assert picture.at_once and "no barrier could order the two" in description(picture)
    last = picture.intervals[0].steps[-1]
    assert (last.racing, last.site.text) == ((True, True), "*sum")


def test_threads_of_two_blocks_are_said_to_be() -> None:
    picture = look(BLOCKS, 2)
    assert "of block (" in description(picture) and "no barrier of a block orders them" in description(
        picture
    )
    assert not picture.whole  # barriers of one block say nothing of the other
    assert "threads of two blocks" in svg([("now", picture)])


def test_an_access_in_a_function_that_is_called_is_shown_where_it_is() -> None:
    picture = look(CALLED, 6)
    rows = table(picture)
    assert [(row[2], row[3], row[4]) for row in rows] == [
        ("writes, races", "s[t]", "1"),
        ("reads, races", "mine[127 - threadIdx.x]", "6"),
    ]


def test_what_no_execution_comes_to_is_shown_alone() -> None:
    analyzer, path = Analyzer(Settings()), Path("/p/a.cu")
    try:
        race = race_on(analyzer.check(path, REDUCE), 7)
        meeting = meeting_of(race) if race is not None else None
        assert meeting is not None
        analyzer.check(path, REDUCE.replace("s[t + d]", "in[t + d]"))  # executed, it reads something else
        picture = interval_picture(path, meeting, analyzer)
    finally:
        analyzer.shutdown()
    assert picture is not None and not picture.whole and len(picture.intervals[0].steps) == 2


def test_the_command_line_draws_the_race_and_the_verified_repair() -> None:
    result = CliRunner().invoke(main, ["explain", "--picture", f"{DEMO / 'matmul.cu'}:14"])
    assert result.exit_code == 0
    titles = [text.text or "" for text in Xml.fromstring(result.output).findall(".//{*}text")]
    assert "now: a race on as[0][1]" in titles
    assert "after the verified repair: a barrier orders the two on as[0][1]" in titles
    assert "no barrier here: nothing orders the two" in titles and "__syncthreads() ends interval 2" in titles
    words = Xml.fromstring(result.output).find("{*}desc")
    assert words is not None and "between them: __syncthreads() on line 15" in (words.text or "")
    assert "prefers-color-scheme: dark" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--of", "banks"], "wavefronts"),
        (["--of", "intervals"], "Barrier intervals"),
        ([], "Barrier intervals"),
    ],
)
def test_where_there_are_both_the_race_comes_first_unless_asked(options: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["explain", "--picture", f"{DEMO / 'matmul.cu'}:14", *options])
    assert result.exit_code == 0 and said in result.output


def test_a_line_without_a_race_has_no_intervals() -> None:
    place = f"{DEMO / 'transpose.cu'}:12"
    result = CliRunner().invoke(main, ["explain", "--picture", place, "--of", "intervals"])
    assert result.exit_code == 2 and "no race of two threads that are known" in result.output
