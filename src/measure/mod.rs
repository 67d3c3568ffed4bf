//! The runner: supervisor, workers, journal, rounds.
