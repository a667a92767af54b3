//! Locks that a jump out of a signal handler cannot leave locked.
//!
//! While a lock is held, the thread's signals are held off. Every lock of the recorder is of one of these types (the test
//! `locks_hold_signals_off` checks it). No lock is held while the recorder waits for other ranks.

use std::ops::{Deref, DerefMut};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use crate::host::signals::HeldOff;

/// Access to locked data. The data are released before the signals.
pub struct Held<G> {
    guard: G,
    _signals: HeldOff,
}

impl<G> Held<G> {
    fn after(signals: HeldOff, guard: G) -> Self {
        Self { guard, _signals: signals }
    }
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Exclusive access.
pub type Locked<'a, T> = Held<MutexGuard<'a, T>>;
/// Shared access.
pub type Shared<'a, T> = Held<RwLockReadGuard<'a, T>>;

/// Data for one thread at a time.
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub const fn new(data: T) -> Self {
        Self(Mutex::new(data))
    }

    pub fn lock(&self) -> Locked<'_, T> {
        let signals = HeldOff::begin();
        Held::after(signals, self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None` while a thread holds the lock.
    pub fn try_lock(&self) -> Option<Locked<'_, T>> {
        let signals = HeldOff::begin();
        match self.0.try_lock() {
            Ok(guard) => Some(Held::after(signals, guard)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(Held::after(signals, poisoned.into_inner()))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Data for several readers or one writer.
pub struct SharedLock<T>(RwLock<T>);

impl<T> SharedLock<T> {
    pub const fn new(data: T) -> Self {
        Self(RwLock::new(data))
    }

    pub fn read(&self) -> Shared<'_, T> {
        let signals = HeldOff::begin();
        Held::after(signals, self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn write(&self) -> Held<RwLockWriteGuard<'_, T>> {
        let signals = HeldOff::begin();
        Held::after(signals, self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}
