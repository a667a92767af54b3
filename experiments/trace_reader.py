"""Reads a rank file of a run directory, independently of the analyzer's reader.

`RankFile` reads the valid prefix of a file; warnings about the rest go to standard error. Written from
docs/reference/trace-format.md (its sections are named below) and docs/reference/encoded-chunks.md, standard library
only.
"""

import struct
import sys
import zlib
from array import array
from collections import namedtuple
from pathlib import Path

from encoded_chunks import DamagedChunk, decode

GRANULE = 64
HEADER_BYTES = 32768
MAX_PAYLOAD_BYTES = 4 << 20
TOOL, REGION_BEGIN, REGION_END, CONTINUATION, FIRST_FUNCTION = 1, 2, 3, 4, 16
# Kinds of continuations.
DURATION, BYTES, RECEIVE, REQUEST, POLLS, MESSAGE, TEAM, TEAM_WAITS, FILE_CALLS = 1, 2, 3, 4, 5, 6, 7, 8, 9
VERSION, SLOT_BYTES = 2, 40
SITE_BEHIND_BINDING = 1 << 63
LONG_DURATION = 0xFFFFFFFF


class Unreadable(Exception):
    """The run or one of its files cannot be used; the text says why."""


def warn(text):
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr)


class Decoder:
    """Reads values by the encoding rules of section 3."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Unreadable("a value is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def u32(self):
        return self.number("I")

    def u64(self):
        return self.number("Q")

    def boolean(self):
        value = self.number("B")
        if value > 1:
            raise Unreadable("a boolean is neither 0 nor 1")
        return value == 1

    def string(self):
        try:
            return bytes(self.take(self.u64())).decode()
        except UnicodeDecodeError:
            raise Unreadable("a string is not UTF-8") from None

    def items(self, read):
        return [read() for _ in range(self.u64())]

    def pairs(self):
        return self.items(lambda: (self.string(), self.string()))

    def end(self):
        if self.at != len(self.data):
            raise Unreadable(f"{len(self.data) - self.at} bytes are left over")


Anchor = namedtuple("Anchor", "ticks width_ticks monotonic_raw_ns realtime_ns")
Exchange = namedtuple(
    "Exchange",
    "phase parent same_host rounds kept child_ticks parent_ticks bound_ticks"
    " min_round_trip_ticks median_round_trip_ticks",
)
Module = namedtuple("Module", "path identity base begin end ticks")
Chunk = namedtuple("Chunk", "at end thread sequence opened_ticks encoded")


class Thread:
    """A thread's events as columns: function, begin, end, the work of compute functions.

    `settled` is 0 for open and abandoned calls, whose end is not known. For a run of polls, `calls` is
    their number and `busy` its begin plus the time inside them; otherwise `busy` is `end`. `site` is the
    address that a call returns to, 0 if none was recorded (at level 0)."""

    def __init__(self, number):
        self.number = number
        self.function, self.settled = array("H"), array("B")
        self.begin, self.end, self.busy = array("Q"), array("Q"), array("Q")
        self.detail, self.calls, self.site = array("Q"), array("Q"), array("Q")
        self.open_last = False
        self.damage = None

    def pop(self):
        for column in (self.function, self.settled, self.begin, self.end, self.busy):
            column.pop()
        for column in (self.detail, self.calls, self.site):
            column.pop()

    def last_stamp(self):
        return max(max(self.begin), max(self.end)) if self.begin else None


class RankFile:
    """One rank's file: header (section 3), chunks (4), events (5), definitions (7)."""

    def __init__(self, path):
        self.path = path
        self.data = memoryview(path.read_bytes())
        self.read_header()
        self.anchors, self.exchanges, self.regions, self.modules = [], [], {}, []
        self.begin_ticks = self.end_ticks = self.stopped_ticks = None
        self.finalized = False
        self.threads = [self.read_thread(chunks) for chunks in self.walk_chunks()]

    def warn(self, at, text):
        warn(f"{self.path}: at byte {at}: {text}")

    def read_header(self):
        if len(self.data) < HEADER_BYTES:
            raise Unreadable("shorter than a rank file's header")
        fixed = struct.unpack_from("<8sHBBIIIIIII", self.data)
        magic, version, self.level, self.counter, self.rank, self.world_size, self.world = fixed[:7]
        _, payload_bytes, payload_crc, fixed_crc = fixed[7:]
        if magic != b"GAMMACHI":
            raise Unreadable("not a gammachi rank file")
        if version != VERSION:
            raise Unreadable(f"format version {version}; this program reads version {VERSION}")
        if zlib.crc32(self.data[:36]) != fixed_crc:
            raise Unreadable("the header is damaged (fixed part)")
        if self.counter not in (1, 2, 3):
            raise Unreadable(f"unknown counter {self.counter}")
        payload = self.data[64 : 64 + payload_bytes]
        if payload_bytes > HEADER_BYTES - 64 or zlib.crc32(payload) != payload_crc:
            raise Unreadable("the header is damaged (payload)")
        value = Decoder(payload)
        for _ in ("recorder_version", "program", "build_id"):
            value.string()
        value.items(value.string)  # arguments
        value.string()  # directory
        self.host, self.boot_id = value.string(), value.string()
        for _ in ("mpi_library", "mpi_family"):
            value.string()
        for _ in ("mpi_version", "mpi_version", "thread_level"):
            value.number("i")
        self.counter_invariant = value.boolean()
        self.compute = value.string()
        value.pairs()  # parameters
        value.items(value.u32)  # affinity
        value.number("i")  # numa_node
        names = value.string()
        value.end()
        self.names = names.split("\n") if names else []

    def walk_chunks(self):
        """Reads the definitions and returns the threads' event chunks in order (section 4)."""
        events, at = [], HEADER_BYTES
        while at < len(self.data):
            if len(self.data) - at < 64:
                self.warn(at, "a chunk's header is cut off")
                break
            magic, kind, _, thread, sequence, length, opened, _, crc = struct.unpack_from(
                "<4sHHIIQQII", self.data, at
            )
            if magic == bytes(4):
                at += GRANULE
                continue
            sound = magic == b"GCHK" and zlib.crc32(self.data[at + 4 : at + 36]) == crc
            if not sound or length < GRANULE or length % GRANULE:
                self.warn(at, "a chunk's header is damaged; its chunk is left out")
                at += GRANULE
                continue
            end = min(at + length, len(self.data))
            if kind == 1 and struct.unpack_from("<Q", self.data, at + 56)[0]:
                pass  # A window whose slots were being cleared: they are in another chunk.
            elif kind == 1:
                events.append(Chunk(at, end, thread, sequence, opened, None))
            elif kind == 5:
                body, body_crc = struct.unpack_from("<II", self.data, at + 48)
                events.append(Chunk(at, end, thread, sequence, opened, (body, body_crc)))
            elif kind == 2:
                self.read_definitions(at + 64, end)
            else:
                # Being written when the process died; samples and stacks, which are not read here.
                if kind in (4, 6, 7, 8):
                    at += length
                    continue
                self.warn(at, "totals are not read here: use gammachi report" if kind == 3
                          else f"a chunk of unknown kind {kind} is left out")
            at += length
        threads = {}
        for chunk in sorted(events, key=lambda chunk: (chunk.thread, chunk.sequence)):
            chain = threads.setdefault(chunk.thread, [])
            if chunk.sequence < len(chain):
                continue  # A window and its copy have the same contents.
            if chunk.sequence != len(chain):
                self.warn(chunk.at, f"thread {chunk.thread}: an earlier chunk is missing")
            else:
                chain.append(chunk)
        return [chain for chain in threads.values() if chain]

    def read_definitions(self, at, end):
        while at + 8 <= end:
            length, crc = struct.unpack_from("<II", self.data, at)
            if length == 0:
                return
            if length > MAX_PAYLOAD_BYTES or at + 8 + length > end:
                self.warn(at, "a definition is longer than its chunk; the rest is left out")
                return
            payload = self.data[at + 8 : at + 8 + length]
            if zlib.crc32(payload) != crc:
                self.warn(at, "a definition is damaged; it is left out")
            else:
                try:
                    self.define(Decoder(payload))
                except Unreadable as error:
                    self.warn(at, f"a definition cannot be decoded: {error}")
            at += (8 + length + 7) // 8 * 8

    def define(self, value):
        number = value.u32()
        if number == 0:
            self.anchors.append(Anchor(*(value.u64() for _ in range(4))))
        elif number == 1:
            head = (value.u32(), value.u32(), value.boolean(), value.u32(), value.u32())
            self.exchanges.append(Exchange(*head, *(value.u64() for _ in range(5))))
        elif number == 2:
            region = value.u32()
            self.regions[region] = value.string()
        elif number == 4:
            ticks = value.u64()
            if self.end_ticks is None:
                self.begin_ticks = ticks
            else:  # Another session resumed the recording.
                self.end_ticks, self.finalized = None, False
        elif number == 5:
            self.end_ticks = value.u64()
        elif number == 6:
            self.stopped_ticks, reason = value.u64(), value.string()
            warn(f"{self.path}: recording ended early: {reason}")
        elif number == 7:
            self.finalized, lost = True, value.u64()
            if lost:
                warn(f"{self.path}: {lost} events were lost")
        elif number == 12:
            names = value.string(), value.string()
            self.modules.append(Module(*names, *(value.u64() for _ in range(4))))
        else:
            return  # 3 thread usage, 8 environment, and what later versions add
        value.end()

    def read_thread(self, chunks):
        thread = Thread(chunks[0].thread)
        limits = [chunk.opened_ticks for chunk in chunks[1:]] + [(1 << 64) - 1]
        for chunk, limit in zip(chunks, limits):
            at, thread.damage = self.read_events(thread, chunk, limit)
            if thread.damage:
                self.warn(at, f"{thread.damage}; later events of thread {thread.number} are left out")
                break
        return thread

    def read_events(self, thread, chunk, limit):
        """Adds a chunk's events to a thread; returns the offset and nature of damage, if any."""
        first, size = chunk.at + 64, SLOT_BYTES
        slots = self.data[first : first + (chunk.end - first) // size * size]
        if chunk.encoded:
            body = self.data[first : min(first + chunk.encoded[0], chunk.end)]
            if zlib.crc32(body) != chunk.encoded[1]:
                return first, "a chunk of events is damaged (checksum)"
            try:
                slots = b"".join(struct.pack("<5Q", *slot) for slot in decode(body, chunk.opened_ticks))
            except DamagedChunk as error:
                return first, str(error)
        last_function = FIRST_FUNCTION + len(self.names)
        previous = max(thread.begin[-1] if thread.begin else 0, chunk.opened_ticks)
        wants_duration = has_event = False
        index = 0
        for index, (begin, word, low, high, site) in enumerate(struct.iter_unpack("<5Q", slots)):
            at = first if chunk.encoded else first + index * size
            kind = duration = word & 0xFFFFFFFF
            function = word >> 32 & 0x3FFF
            is_open, abandoned = word >> 47 & 1, word >> 46 & 1
            if function == CONTINUATION:
                if not has_event or not DURATION <= kind <= FILE_CALLS:
                    return at, "a continuation without its event or of unknown kind"
                if wants_duration and kind in (DURATION, POLLS):
                    span = begin if kind == DURATION else high
                    if thread.begin[-1] + max(span, begin) >= 1 << 64:
                        thread.pop()
                        return at, "an event that ends beyond the counter's range"
                    thread.end[-1] = thread.begin[-1] + span
                    thread.busy[-1] = thread.begin[-1] + min(span, begin)
                    thread.calls[-1] = low if kind == POLLS else 1
                    wants_duration = False
                continue
            if wants_duration:
                thread.pop()
                return at, "a long event without its continuation"
            if word == 0:
                if any(slots[(index + 2) * size :]):
                    return at, "an empty slot before others"
                break
            if function > REGION_END and not FIRST_FUNCTION <= function < last_function:
                return at, f"an event of unknown function {function}"
            if begin < previous or begin > limit:
                return at, "an event that begins out of order"
            if (is_open or abandoned) and duration:
                return at, "an open or abandoned event with a duration"
            if begin + duration >= 1 << 64:
                return at, "an event that ends beyond the counter's range"
            wants_duration = duration == LONG_DURATION
            previous, has_event = begin, True
            end = begin if wants_duration else begin + duration
            thread.function.append(function)
            thread.settled.append(not (is_open or abandoned))
            thread.begin.append(begin)
            thread.end.append(end)
            thread.busy.append(end)
            thread.detail.append(low)
            thread.calls.append(1)
            thread.site.append(site & ~SITE_BEHIND_BINDING)
            thread.open_last = bool(is_open)
        if wants_duration:
            thread.pop()
            return first + index * size, "a long event without its continuation"
        return None, None

    def module(self, address, ticks):
        """The module that contained an address at a moment: the last one defined there before."""
        for module in reversed(self.modules):
            if module.begin <= address < module.end and module.ticks <= ticks:
                return module
        return None

    def name(self, function):
        return self.names[function - FIRST_FUNCTION]

    def stretch(self):
        """Begin and end of the rank on its own counter (section 11)."""
        begin = self.begin_ticks
        if begin is None:
            inits = [
                thread.end[index]
                for thread in self.threads
                for index, function in enumerate(thread.function)
                if function >= FIRST_FUNCTION
                and self.name(function) in ("MPI_Init", "MPI_Init_thread")
            ]
            if not inits:
                raise Unreadable(f"{self.path}: the beginning of the rank is not recorded")
            begin = inits[0]
        main = [thread for thread in self.threads if thread.number == 0]
        stamps = [thread.last_stamp() for thread in self.threads if thread.begin]
        end = self.end_ticks
        if main and main[0].damage:
            last = main[0].last_stamp() or begin
            end = last if end is None else min(end, last)
        elif self.stopped_ticks is not None:
            end = self.stopped_ticks if end is None else min(end, self.stopped_ticks)
        elif end is None:
            end = max(stamps, default=begin)
        return begin, max(begin, end)
