//! What is not as in a policy of the API server, and what to write instead: `differences.yaml`, which the documentation shows
//! and the conformance suite in `e2e/expressions` proves.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

/// Texts, and names of fields: no difference is in them.
const NAMES: &str = "'[^']*'|\"[^\"]*\"|`[^`]*`|\\.\\s*\\??\\s*\\w+";

#[derive(Deserialize)]
struct File {
    /// The functions that may be called, as `size/1` by the number of their arguments, and `.size/0` with a target.
    functions: Vec<String>,
    differences: Vec<Difference>,
}

#[derive(Deserialize)]
struct Difference {
    /// What to write instead.
    instead: String,
    /// A regular expression for what is refused when an expression is compiled.
    refused: Option<String>,
}

/// The file, and a regular expression with a group for each pattern in it.
static FILE: LazyLock<Result<(File, Regex), String>> = LazyLock::new(|| {
    let file = serde_saphyr::from_str::<File>(include_str!("differences.yaml"));
    let file = file.map_err(|error| error.to_string())?;
    let patterns = file.differences.iter().filter_map(|difference| difference.refused.as_ref());
    let groups = patterns.map(|pattern| format!("({pattern})|")).collect::<Vec<_>>().concat();
    let groups = Regex::new(&(groups + NAMES)).map_err(|error| error.to_string())?;
    Ok((file, groups))
});

/// Refuses what is read otherwise, or not offered, and says what to write instead.
pub(super) fn check_source(source: &str) -> Result<(), String> {
    let (file, groups) = FILE.as_ref()?;
    for found in groups.captures_iter(source) {
        let refused = file.differences.iter().filter(|difference| difference.refused.is_some());
        let mut of_each = found.iter().skip(1).zip(refused);
        if let Some((_, Difference { instead, .. })) = of_each.find(|(found, _)| found.is_some()) {
            return Err(format!("{} is not read as in the API server; {instead}", &found[0]));
        }
    }
    Ok(())
}

/// Refuses an unknown function.
pub(super) fn check_function(name: &str, has_target: bool, arguments: usize) -> Result<(), String> {
    let call = format!("{}{name}/{arguments}", if has_target { "." } else { "" });
    let is_known = FILE.as_ref()?.0.functions.contains(&call);
    if is_known { Ok(()) } else { Err(format!("there is no function {name} with {arguments} arguments")) }
}
