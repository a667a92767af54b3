//! What encoder and decoder remember about the calls of a window. Both update it in the same way.

use super::requests::{Expected, Ring};
use super::slot::{Apart, apart, is_continuation, is_escaped, request};
use super::{Damage, Words};

/// Number of templates remembered; later ones replace the oldest.
pub(super) const TEMPLATES: usize = 2048;
/// Number of continuations whose expectations are remembered.
const CONTINUATIONS: usize = 2048;
/// Maximum number of slots of a call; further continuations form calls of their own.
pub(super) const MAX_CALL_SLOTS: usize = 64;

/// The first slot continues an event before the window, or one that has too many slots.
pub(super) const ORPHAN: u8 = 1;
/// The event's duration is in a continuation.
pub(super) const ESCAPED: u8 = 2;
/// The event has a nonzero request.
pub(super) const REQUEST: u8 = 4;
/// A continuation has a nonzero request.
pub(super) const REQUEST_BEHIND: u8 = 8;
/// A continuation has times of its own.
pub(super) const TIMES_BEHIND: u8 = 16;

/// A call: its first occurrence in the window, and what is expected of the next one like it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Template {
    /// Index of its first slot.
    pub(super) at: u32,
    /// Number of the template that followed it.
    pub(super) next: u16,
    /// Index of the first of its continuations' expectations.
    behind: u16,
    /// Number of slots.
    pub(super) length: u8,
    /// [`ORPHAN`] …
    pub(super) flags: u8,
    /// Exponent of the gap before it.
    pub(super) gap: u8,
    /// Exponent of its duration.
    pub(super) duration: u8,
    /// Expectation for its event's request.
    pub(super) request: Expected,
}

impl Template {
    /// Whether expectations for its slots are stored.
    fn has_entries(&self) -> bool {
        self.length > 1 || self.flags & ORPHAN != 0
    }
}

/// What is expected of a continuation.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Behind {
    pub(super) request: Expected,
    /// Exponents of its times.
    pub(super) exponents: [u8; 4],
}

/// The templates of a window. All bytes zero is a valid value.
#[repr(C)]
pub(super) struct Templates {
    templates: [Template; TEMPLATES],
    behind: [Behind; CONTINUATIONS],
    pub(super) ring: Ring,
    /// Number of templates made so far.
    count: u32,
    /// Number of continuation expectations made so far.
    behind_count: u32,
}

impl Templates {
    pub(super) const fn new() -> Self {
        let request = Expected::new();
        let template = Template {
            at: 0,
            next: 0,
            behind: 0,
            length: 0,
            flags: 0,
            gap: 0,
            duration: 0,
            request,
        };
        Self {
            templates: [template; TEMPLATES],
            behind: [Behind { request, exponents: [0; 4] }; CONTINUATIONS],
            ring: Ring::new(),
            count: 0,
            behind_count: 0,
        }
    }

    /// Begins a window. The entries need no reset, because none is used before it is made.
    pub(super) fn reset(&mut self) {
        self.ring = Ring::new();
        self.count = 0;
        self.behind_count = 0;
    }

    /// Number of templates that can be referred to.
    #[inline(always)]
    pub(super) fn named(&self) -> u32 {
        self.count.min(TEMPLATES as u32)
    }

    /// Width of a template's number in bits.
    #[inline(always)]
    pub(super) fn number_bits(&self) -> u32 {
        u32::BITS - self.named().saturating_sub(1).leading_zeros()
    }

    /// How many templates ago a template was made; 0 is the last one.
    pub(super) fn age(&self, number: u16) -> u32 {
        self.count.wrapping_sub(1).wrapping_sub(u32::from(number)) % TEMPLATES as u32
    }

    /// Undoes [`Self::age`].
    pub(super) fn of_age(&self, age: u32) -> Result<u16, Damage> {
        if age >= self.named() {
            return Err(Damage::Template);
        }
        Ok((self.count.wrapping_sub(1).wrapping_sub(age) % TEMPLATES as u32) as u16)
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u16) -> &Template {
        &self.templates[usize::from(number) % TEMPLATES]
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u16) -> &mut Template {
        &mut self.templates[usize::from(number) % TEMPLATES]
    }

    /// Expectation for a slot of a template other than its event.
    #[inline(always)]
    pub(super) fn behind_mut(&mut self, template: u16, slot: usize) -> &mut Behind {
        let first = usize::from(self.get(template).behind);
        &mut self.behind[(first + slot) % CONTINUATIONS]
    }

    /// The ring and a template.
    #[inline(always)]
    pub(super) fn ring_and_template(&mut self, template: u16) -> (&mut Ring, &mut Template) {
        (&mut self.ring, &mut self.templates[usize::from(template) % TEMPLATES])
    }

    /// The ring and the expectation for the request of a call's slot.
    #[inline(always)]
    pub(super) fn ring_and_request(
        &mut self,
        template: u16,
        slot: usize,
    ) -> (&Ring, &mut Expected) {
        let entry = &mut self.templates[usize::from(template) % TEMPLATES];
        if slot == 0 && entry.flags & ORPHAN == 0 {
            return (&self.ring, &mut entry.request);
        }
        let behind = &mut self.behind[(usize::from(entry.behind) + slot) % CONTINUATIONS];
        (&self.ring, &mut behind.request)
    }

    /// Makes a template of a call whose first slot has the index `at`. It inherits the expectations
    /// of the template of the same length relative to which the call was written, if any.
    pub(super) fn add(&mut self, at: u32, call: &[Words], beside: Option<u16>) -> u16 {
        let number = (self.count % TEMPLATES as u32) as u16;
        let length = call.len().min(MAX_CALL_SLOTS);
        let flags = flags(call);
        let behind = (self.behind_count as usize % CONTINUATIONS) as u16;
        if length > 1 || flags & ORPHAN != 0 {
            // A single event has no entries of its own; those of an earlier window may be stored
            // there.
            let beside = beside.filter(|beside| self.get(*beside).has_entries());
            for slot in 0..length {
                let fresh = Behind { request: Expected::new(), exponents: [0; 4] };
                let expected = beside.map_or(fresh, |beside| *self.behind_mut(beside, slot));
                self.behind[(usize::from(behind) + slot) % CONTINUATIONS] = expected;
            }
            self.behind_count = self.behind_count.wrapping_add(length as u32);
        }
        let mut template = Template {
            at,
            next: number,
            behind,
            length: length as u8,
            flags,
            gap: 0,
            duration: 0,
            request: Expected::new(),
        };
        if let Some(beside) = beside {
            let Template { next, gap, duration, request, .. } = *self.get(beside);
            template = Template { next, gap, duration, request, ..template };
        }
        *self.get_mut(number) = template;
        self.count = self.count.wrapping_add(1);
        number
    }
}

fn flags(call: &[Words]) -> u8 {
    let mut flags = 0;
    let Some((first, mut rest)) = call.split_first() else { return flags };
    if is_continuation(first) {
        flags |= ORPHAN;
        rest = call;
    } else {
        flags |= if is_escaped(first) { ESCAPED } else { 0 };
        flags |= if request(first) != 0 { REQUEST } else { 0 };
    }
    for continuation in rest {
        flags |= match apart(continuation) {
            Apart::Nothing => 0,
            Apart::Request => REQUEST_BEHIND,
            Apart::Duration | Apart::Polls | Apart::Four => TIMES_BEHIND,
        };
    }
    flags
}
