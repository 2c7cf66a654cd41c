#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hostile_input::ANNOTATIONS.read(input));
