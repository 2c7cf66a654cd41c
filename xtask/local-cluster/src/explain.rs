//! Errors in a readable form, and the supervisor's own log.

/// The chain of causes in one line. A layer that only repeats the next one is left out.
#[must_use]
pub fn explain(error: &anyhow::Error) -> String {
    let layers: Vec<String> = error.chain().map(ToString::to_string).collect();
    let says_more = |(index, layer): (usize, &String)| {
        layers.get(index + 1).is_none_or(|next| !layer.contains(next.as_str())).then(|| layer.clone())
    };
    layers.iter().enumerate().filter_map(says_more).collect::<Vec<_>>().join(": ")
}

/// Writes one line with the time to standard error, which is the supervisor's log file.
pub fn note(text: &str) {
    let now = jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default();
    eprintln!("{now} {text}");
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_layer_that_repeats_its_cause_is_left_out() {
        let error = anyhow!("no space").context("ApiError: no space (no space)").context("could not write");
        assert_eq!(explain(&error), "could not write: no space");
    }
}
