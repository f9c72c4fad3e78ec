//! Nobody disturbs another: a client of one tenant, beside attacks of another.

mod chaos;
