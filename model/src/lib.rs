//! The model of the API server, on which the controllers' own decisions are checked, and which is compared with the real one.

pub mod server;
