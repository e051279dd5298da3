#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stdiowatch_fuzz::fuzzed::compare::run(data));
