//! A new file of tests changes no file that the compiler reads.

fn main() {
    println!("cargo::rerun-if-changed=tests");
}
