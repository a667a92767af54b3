"""Decodes the slots of an encoded chunk, independently of the analyzer's decoder.

`decode` takes the bytes after a chunk's header and returns its slots. Written from docs/reference/encoded-chunks.md
alone, standard library only; much faster than the decoder there (experiments/accuracy/check-encoding compares the two). Values that
no encoder writes (an exponent above 63, a content with values that are encoded separately) count as damage here.
"""

import struct

U32, U64 = (1 << 32) - 1, (1 << 64) - 1
MAX_SLOTS = (64 << 20) // 40
MAX_SLOTS_OF_CALL = 64
# Templates, and entries of the table of expectations; both a power of 2.
TEMPLATES = ENTRIES = 2048
RING = 64
CONTINUATION = 4
DURATION, REQUEST_KINDS, POLLS, FOUR_KINDS = 1, (4, 6), 5, (7, 8, 9)
NO_DURATION = 0xFFFFFFFF
# Fields of a slot in the order in which they are written: bits, width of the difference.
FIELDS = ((64, 6), (32, 5), (32, 5), (32, 5), (32, 5), (32, 5), (32, 5), (64, 6))
ZERO_SLOT = (0,) * len(FIELDS)
# Words of 64 zero bits after the stream: more than a call takes, so that one check per call finds its end.
PAD_WORDS = 1024
MASKS = [(1 << bits) - 1 for bits in range(65)]
# The change for the code `1111111`: out of range with any exponent.
ESCAPE = 1 << 10


class DamagedChunk(Exception):
    """The bytes cannot be decoded; the text says why."""


def unzigzag(z):
    return (z >> 1) ^ -(z & 1)


def code_table():
    """For each value of 13 bits, the length of the time code at its beginning and the change of the exponent."""
    table = []
    for bits in range(1 << 13):
        ones = (~bits & bits + 1).bit_length() - 1
        if ones > 6:
            table.append((7, ESCAPE))
        else:
            count = (1 << ones | bits >> ones + 1 & MASKS[ones]) - 1
            table.append((2 * ones + 1, unzigzag(count)))
    return table


CODES = code_table()


def words_of(body):
    """The stream as overlapping words of 128 bits, one every 64 bits: any 65 bits are within one of them."""
    tail = bytes(-len(body) % 8 + 8 * PAD_WORDS)
    halves = struct.unpack(f"<{(len(body) + len(tail)) // 8}Q", bytes(body) + tail)
    return [low | high << 64 for low, high in zip(halves, halves[1:])]


class Expectations:
    """The expected request of a slot and four exponents of its times."""

    __slots__ = ("last", "stride", "distance", "exponents")

    def __init__(self, last=0, stride=0, distance=0, exponents=(0, 0, 0, 0)):
        self.last, self.stride, self.distance = last, stride, distance
        self.exponents = list(exponents)

    def copy(self):
        return Expectations(self.last, self.stride, self.distance, self.exponents)


class Template:
    """Contents of a call's slots, and the expectations for the next such call.

    `event` has the expectations of the event; its first two exponents are those of gap and duration. `slots`
    are the contents as slots, with separately encoded values set to zero; `requests` and `times` are the
    positions of these values."""

    __slots__ = ("contents", "slots", "orphan", "lasts", "event", "next", "first_entry", "requests", "times",
                 "plain")

    def __init__(self, contents):
        self.contents, self.slots, self.requests, self.times = contents, [], [], []
        self.orphan = contents[0][2] & 0xFFFF == CONTINUATION
        self.lasts = True
        self.event, self.next, self.first_entry = None, 0, None
        for place, (begin, low, high, peer, tag, size, request, site) in enumerate(contents):
            right = True
            if place == 0 and not self.orphan:
                self.lasts = low != NO_DURATION
                right = begin == 0 and (low == 0 or not self.lasts) and request < 2
            elif high & 0xFFFF != CONTINUATION:
                raise DamagedChunk(f"slot {place} of a call is not a continuation")
            elif low in REQUEST_KINDS:
                right = request < 2
            elif low == DURATION:
                self.times.append((place, low))
                right = begin == 0
            elif low == POLLS:
                self.times.append((place, low))
                right = begin == peer == tag == size == request == 0
            elif low in FOUR_KINDS:
                self.times.append((place, low))
                right = begin == peer == tag == size == request == site == 0
            if not right:
                raise DamagedChunk(f"the content of slot {place} of a call has a value that is encoded separately")
            if request and (place == 0 and not self.orphan or low in REQUEST_KINDS):
                self.requests.append(place)
                request = 0
            self.slots.append((begin, low | high << 32, peer | tag << 32, size | request << 32, site))
        self.plain = len(contents) == 1 and not self.orphan and self.lasts and not self.requests

    def entries(self):
        """Number of entries that it takes in the table of expectations."""
        return len(self.contents) if len(self.contents) > 1 or self.orphan else 0


class Stream:
    """A stream's bits, and the state that is kept from call to call."""

    def __init__(self, body, opened_ticks):
        if len(body) < 8:
            raise DamagedChunk("the header is cut off")
        self.most, self.step = struct.unpack_from("<II", body)
        if self.step == 0:
            raise DamagedChunk("the step is 0")
        if self.most > MAX_SLOTS:
            raise DamagedChunk(f"{self.most} slots are more than a chunk can have")
        self.words, self.at, self.bits = words_of(body), 64, 8 * len(body)
        self.end = opened_ticks & U64
        self.templates, self.count, self.previous = [], 0, 0
        self.table, self.taken = [Expectations() for _ in range(ENTRIES)], 0
        self.ring, self.pushed = [0] * RING, 0
        self.slots = []

    def take(self, bits):
        """The next bits, at most 64."""
        at = self.at
        self.at = at + bits
        return self.words[at >> 6] >> (at & 63) & MASKS[bits]

    def check_end(self):
        if self.at > self.bits:
            raise DamagedChunk(f"the bits end after {len(self.slots)} of {self.most} slots")

    def ones(self, most):
        """Number of ones before a zero; stops after `most` ones without reading a zero."""
        for number in range(most):
            if not self.take(1):
                return number
        return most

    def difference(self, width):
        exponent = self.take(width)
        return unzigzag(1 << exponent | self.take(exponent))

    def code(self):
        length, change = CODES[self.words[self.at >> 6] >> (self.at & 63) & 0x1FFF]
        self.at += length
        return change

    def rest(self, change, exponents, place, step):
        """Reads the rest of a time after its code; sets the exponent that is expected next."""
        if change == ESCAPE:
            return self.difference(6) & U64
        exponent = exponents[place] + change
        if exponent >> 6:
            self.check_end()
            raise DamagedChunk(f"the exponent of a time is {exponent}")
        exponents[place] = exponent
        return (self.take(exponent) + MASKS[exponent]) * step & U64

    def time(self, exponents, place, step):
        return self.rest(self.code(), exponents, place, step)

    def named(self):
        return min(self.count, TEMPLATES)

    def template(self):
        """Reads the template of the next call and makes it the previous one."""
        kind = self.ones(3)
        if kind == 0:
            if not self.templates:
                raise DamagedChunk("the first call has no template")
            number = self.templates[self.previous].next
        elif kind == 1:
            number = self.take(max(self.named() - 1, 0).bit_length())
            if number >= self.named():
                self.check_end()
                raise DamagedChunk(f"template {number} of {self.named()} is named")
        else:
            number = self.new_template(kind == 2)
        self.templates[self.previous].next = number
        self.previous = number
        return self.templates[number]

    def new_template(self, beside_other):
        """Makes the next template and returns its number."""
        other = None
        if beside_other:
            ones = self.ones(17)
            if ones > 16:
                raise DamagedChunk("a count begins with more than 16 ones")
            back = (1 << ones | self.take(ones)) - 1
            if back >= self.named():
                self.check_end()
                raise DamagedChunk(f"a template is written beside template {back} back of {self.named()}")
            other = self.templates[(self.count - 1 - back) % TEMPLATES]
            contents = [self.content(content) for content in other.contents]
        else:
            contents = [self.content(ZERO_SLOT) for _ in range(self.take(6) + 1)]
        self.check_end()
        template = Template(contents)
        number = self.count % TEMPLATES
        template.event = other.event.copy() if other else Expectations()
        template.next = other.next if other else number
        if template.entries():
            template.first_entry = self.taken % ENTRIES
            for place in range(template.entries()):
                entry = Expectations()
                if other and other.entries():
                    entry = self.table[(other.first_entry + place) % ENTRIES].copy()
                self.table[(template.first_entry + place) % ENTRIES] = entry
            self.taken += template.entries()
        if number < len(self.templates):
            self.templates[number] = template
        else:
            self.templates.append(template)
        self.count += 1
        return number

    def content(self, other):
        """Reads a slot's content, written as differences from another."""
        differs, fields = self.take(8), list(other)
        if differs:
            for place, (bits, width) in enumerate(FIELDS):
                if differs >> place & 1:
                    fields[place] = fields[place] + self.difference(width) & MASKS[bits]
        return tuple(fields)

    def expectations(self, template, place):
        if place == 0 and not template.orphan:
            return template.event
        return self.table[(template.first_entry + place) % ENTRIES]

    def read_requests(self, template, slots):
        """Fills in the separately encoded requests."""
        some_unexpected, ring, pushed = self.take(1), self.ring, self.pushed
        for place in template.requests:
            of = self.expectations(template, place)
            kind = self.ones(3) if some_unexpected else 0
            if kind == 1:
                of.distance = self.take(6) + 1
            elif kind > 1:
                of.distance = 0
            if kind == 3:
                request = self.take(32)
                of.stride = request - of.last & U32
            elif of.distance:
                request = ring[(pushed - of.distance) % RING]
            else:
                request = of.last + of.stride & U32
            if request == 0:
                self.check_end()
                raise DamagedChunk("a separately encoded request is 0")
            of.last = request
            begin, word, object_, amount, site = slots[place]
            slots[place] = (begin, word, object_, amount | request << 32, site)
        if template.requests[0] == 0 and not template.orphan:
            request = template.event.last
            if request != ring[(pushed - 1) % RING]:
                ring[pushed % RING] = request
                self.pushed += 1

    def read_times(self, template, slots, event_begin):
        """Fills in the times of continuations."""
        for place, kind in template.times:
            exponents = self.expectations(template, place).exponents
            begin, word, object_, amount, site = slots[place]
            if kind in FOUR_KINDS:
                times = [self.time(exponents, each, self.step) for each in range(4)]
                slots[place] = (times[0], word, times[1], times[2], times[3])
                continue
            if kind == POLLS:
                differs = self.take(1)
                ticks = begin = amount = self.time(exponents, 0, self.step)
                object_ = 1
                if differs:
                    object_ = self.time(exponents, 1, 1)
                    begin = amount - self.time(exponents, 2, self.step) & U64
            else:
                ticks = begin = self.time(exponents, 0, self.step)
            slots[place] = (begin, word, object_, amount, site)
            if not template.orphan:
                self.end = event_begin + ticks & U64

    def read_call(self):
        """Reads the next call, of any kind."""
        template = self.template()
        if len(template.slots) > self.most - len(self.slots):
            self.check_end()
            raise DamagedChunk("the last call has more slots than are left")
        slots, exponents = list(template.slots), template.event.exponents
        gap_code, duration_code = self.code(), self.code()
        gap = self.rest(gap_code, exponents, 0, self.step)
        duration = self.rest(duration_code, exponents, 1, self.step)
        event_begin = 0
        if duration >= (NO_DURATION if template.lasts else 1) or template.orphan and (gap or duration):
            self.check_end()
            raise DamagedChunk(f"a call cannot have a gap of {gap} and a duration of {duration} ticks")
        if not template.orphan:
            event_begin = self.end + gap & U64
            self.end = event_begin + duration & U64
            _, word, object_, amount, site = slots[0]
            if template.lasts:
                word |= duration
            slots[0] = (event_begin, word, object_, amount, site)
        if template.requests:
            self.read_requests(template, slots)
        if template.times:
            self.read_times(template, slots, event_begin)
        self.check_end()
        self.slots += slots

    def read(self):
        """Reads all calls: those with one slot and an expected template here, the others with `read_call`."""
        words, templates, slots, step, most = self.words, self.templates, self.slots, self.step, self.most
        while len(slots) < most:
            at, end = self.at, self.end
            if templates and at <= self.bits:
                template = templates[self.previous]
                while len(slots) < most:
                    window = words[at >> 6] >> (at & 63)
                    if window & 1:
                        break
                    number = template.next
                    called = templates[number]
                    if not called.plain:
                        break
                    length, change = CODES[window >> 1 & 0x1FFF]
                    then = at + 1 + length
                    length, duration_change = CODES[window >> 1 + length & 0x1FFF]
                    then += length
                    exponents = called.event.exponents
                    gap_exponent, exponent = exponents[0] + change, exponents[1] + duration_change
                    if gap_exponent >> 6 or exponent >> 5:
                        break
                    mask = MASKS[gap_exponent]
                    begin = end + ((words[then >> 6] >> (then & 63) & mask) + mask) * step & U64
                    then += gap_exponent
                    mask = MASKS[exponent]
                    duration = ((words[then >> 6] >> (then & 63) & mask) + mask) * step & U64
                    then += exponent
                    if then > self.bits or duration >= NO_DURATION:
                        break
                    exponents[0], exponents[1] = gap_exponent, exponent
                    _, word, object_, amount, site = called.slots[0]
                    slots.append((begin, word | duration, object_, amount, site))
                    at, end, template, self.previous = then, begin + duration & U64, called, number
                self.at, self.end = at, end
                if len(slots) == most:
                    break
            self.read_call()
        return slots


def decode(body, opened_ticks):
    """The slots of an encoded chunk: tuples of begin, word, object, amount, site."""
    return Stream(body, opened_ticks).read()
