// A test binary without the standard harness: lists one test a trial and becomes the checker for the one that is asked for.
use std::os::unix::process::CommandExt;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let trials: usize = std::env::var("BENCH_TRIALS").unwrap_or("1".into()).parse().unwrap();
    if arguments.iter().any(|a| a == "--list") {
        if !arguments.iter().any(|a| a == "--ignored") {
            for index in 0..trials {
                println!("t{}: test", index);
            }
        }
        return;
    }
    let name = arguments.iter().skip(1).find(|a| !a.starts_with("--")).unwrap();
    let command = std::env::var("BENCH_ARGV").unwrap();
    let parts: Vec<String> = command.split('\u{1f}').map(|p| p.replace("{}", &name[1..])).collect();
    panic!("{}", std::process::Command::new(&parts[0]).args(&parts[1..]).exec());
}
