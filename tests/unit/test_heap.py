"""Memory of a whole program: addresses, what exists, variables with their first contents."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cuda_lsp.dynamic.emulator.heap import START, Heap, Needs
from cuda_lsp.dynamic.emulator.memory import lay_out
from cuda_lsp.dynamic.emulator.printing import formatted
from cuda_lsp.dynamic.ptx.reader import read_module

MODULE = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.visible .const .align 8 .u64 pointer = table;
.func (.param .b32 r) twice(.param .b32 x) { ret; }
.visible .entry k(.param .u64 k_param_0) { ret; }
"""


@pytest.fixture
def heap():
    made = Heap(1 << 20)
    yield made
    made.close()


def exists(heap: Heap, address: int, size: int = 4) -> bool:
    needs = Needs(b"", (), read_module(MODULE), 1, 32, 0, {})
    return heap.memory(needs).exists(address, address + size)


def test_memory_exists_from_its_allocation_to_its_release(heap: Heap) -> None:
    address = heap.allocate(100)
    assert address >= START
    assert exists(heap, address)
    assert exists(heap, address + 96)
    assert not exists(heap, address + 100)
    assert heap.release(address)
    assert not exists(heap, address)
    assert not heap.release(address)


def test_freed_memory_is_given_out_again_and_is_empty(heap: Heap) -> None:
    address = heap.allocate(64)
    heap.data[address : address + 64] = 7
    heap.release(address)
    assert heap.allocate(64) == address
    assert not heap.data[address : address + 64].any()
    assert heap.allocate(2 << 20) == 0


def test_what_is_freed_or_cleared_goes_back_to_the_system(heap: Heap) -> None:
    def held() -> int:
        return os.fstat(heap.descriptor).st_blocks * 512

    first, second = heap.allocate(300_000), heap.allocate(300_000)
    assert held() < 10_000  # nobody has written yet
    for address in (first, second):
        heap.data[address : address + 300_000] = 7
    heap.release(first)
    assert held() < 320_000
    heap.clear(second + 100, 299_000)
    assert held() < 20_000
    around = heap.data[second : second + 300_000]
    assert (around[:100] == 7).all()
    assert (around[299_100:] == 7).all()
    assert not around[100:299_100].any()


def test_variables_hold_what_the_module_says_once(heap: Heap) -> None:
    module = read_module(MODULE)
    heap.declare(module)
    table, pointer = heap.variable("table"), heap.variable("pointer")
    assert table is not None
    assert pointer is not None
    assert heap.data[table.start : table.start + 8].view(np.uint32).tolist() == [1, 2]
    assert int(heap.data[pointer.start : pointer.start + 8].view(np.uint64)[0]) == table.start
    heap.data[table.start] = 9
    heap.declare(module)
    assert heap.data[table.start] == 9


def test_what_a_kernel_frees_is_not_given_out_again_in_the_same_launch(heap: Heap) -> None:
    needs = Needs(b"", (), read_module(MODULE), 1, 32, 0, {})
    memory = heap.memory(needs)
    first = memory.allocate(16)
    memory.release(first)
    assert memory.allocate(16) != first
    assert heap.memory(needs).allocate(16) == first


def test_a_snapshot_brings_contents_back(heap: Heap) -> None:
    address = heap.allocate(16)
    before = heap.snapshot()
    heap.data[address] = 5
    heap.restore(before)
    assert heap.data[address] == 0


def test_printf_reads_packed_arguments_as_the_device_packs_them() -> None:
    data = bytearray(64)
    data[0:4] = (7).to_bytes(4, "little")
    data[8:16] = np.float64(2.5).tobytes()
    data[16:20] = (-1 & 0xFFFFFFFF).to_bytes(4, "little")
    data[24:32] = (40).to_bytes(8, "little")
    data[32:40] = (1 << 40).to_bytes(8, "little")
    data[40:44] = b"abc\0"

    def read(address: int, size: int) -> bytes:
        return bytes(data[address : address + size])

    text = formatted(read, "%03d|%6.2f|%x|%5s|%lld|%%", 0)
    assert text == "007|  2.50|ffffffff|  abc|1099511627776|%"


def test_a_snapshot_brings_back_what_a_kernel_freed_and_drops_what_it_allocated(heap: Heap) -> None:
    needs = Needs(b"", (), read_module(MODULE), 1, 32, 0, {})
    kept = heap.allocate(64)
    heap.data[kept] = 7
    for _ in range(2):
        before = heap.snapshot()
        memory = heap.memory(needs)
        assert memory.allocate is not None
        assert memory.release is not None
        memory.release(kept)
        made = memory.allocate(32)
        heap.memory(needs)
        heap.restore(before)
        assert exists(heap, kept)
        assert not exists(heap, made)
        assert heap.data[kept] == 7
        assert heap.used == 64


def test_a_kernel_that_runs_by_itself_has_a_heap_of_eight_megabytes() -> None:
    memory = lay_out((), {}, 0, (), (), 1, 32, 0, allocates=True)
    small = [memory.allocate(16) for _ in range(8 << 20 >> 5)]
    assert all(small) and len(set(small)) == len(small)
    assert memory.exists(small[-1], small[-1] + 16)
    assert not memory.exists(small[-1], small[-1] + 17)
    assert memory.allocate(16) == 0
    large = lay_out((), {}, 0, (), (), 1, 32, 0, allocates=True)
    assert large.allocate((8 << 20) - 16) and large.allocate(1) == 0
