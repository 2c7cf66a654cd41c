//! Random inputs that can be generated again.

use anyhow::{Context, Result};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A source of one sequence of inputs, by the number in `CATENA_SEED` or at random. It tries this number of times to find a
/// shorter sequence with the same failure.
pub fn runner(max_shrink_iters: u32) -> Result<TestRunner> {
    let seed: u64 = match std::env::var("CATENA_SEED") {
        Ok(seed) => seed.parse().context("CATENA_SEED is no number")?,
        Err(_) => rand::random(),
    };
    println!("the same again: CATENA_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = Config { cases: 1, max_shrink_iters, failure_persistence: None, ..Config::default() };
    Ok(TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)))
}
