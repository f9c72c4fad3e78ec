//! Many objects at once, some of which cannot be reconciled.

mod chaos;
