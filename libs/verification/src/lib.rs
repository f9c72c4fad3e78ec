//! Custom domains: whether the records that prove a domain are there, and what follows.
