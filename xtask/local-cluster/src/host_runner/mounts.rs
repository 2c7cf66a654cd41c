//! Local directories in place of mounted paths: a process has no mount namespace of its own.

use std::path::{Path, PathBuf};

/// The local paths for the paths in a container.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    /// Longest mounted path first, so that the innermost mount wins.
    mounts: Vec<(String, PathBuf)>,
}

impl Mounts {
    /// Takes pairs of mounted path and local path.
    pub fn new(pairs: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        let mut mounts: Vec<_> = pairs
            .into_iter()
            .map(|(mounted, local)| (mounted.trim_end_matches('/').to_owned(), local))
            .filter(|(mounted, _)| !mounted.is_empty())
            .collect();
        mounts.sort_by_key(|(mounted, _)| std::cmp::Reverse(mounted.len()));
        Self { mounts }
    }

    /// The local path of exactly this mounted path.
    pub fn local(&self, mounted: &str) -> Option<&Path> {
        self.mounts.iter().find(|(path, _)| path == mounted).map(|(_, local)| local.as_path())
    }

    /// The text with every mounted path replaced that is a path or the start of one.
    pub fn rewrite(&self, text: &str) -> String {
        let mut rewritten = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(next) = rest.chars().next() {
            let found = starts_path(before)
                .then(|| self.mounts.iter().find(|(mounted, _)| is_path_prefix(mounted, rest)))
                .flatten();
            if let Some((mounted, local)) = found {
                rewritten.push_str(&local.to_string_lossy());
                rest = &rest[mounted.len()..];
                before = mounted.chars().next_back();
            } else {
                rewritten.push(next);
                rest = &rest[next.len_utf8()..];
                before = Some(next);
            }
        }
        rewritten
    }
}

/// `--config=/etc/x`, `a:/etc/x` and `/etc/x` contain the path /etc/x; `/opt/etc/x` does not.
fn starts_path(before: Option<char>) -> bool {
    before.is_none_or(|before| !is_name(before) && before != '/')
}

/// /etc/x is a prefix of `/etc/x`, `/etc/x/y` and `/etc/x,/z`; not of `/etc/xy`.
fn is_path_prefix(mounted: &str, text: &str) -> bool {
    text.strip_prefix(mounted).is_some_and(|after| after.chars().next().is_none_or(|next| !is_name(next)))
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '.' | '_' | '-' | '~' | '+' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Mounts {
        Mounts::new([
            ("/etc/catena".to_owned(), PathBuf::from("/v/config")),
            ("/etc/catena/secret/".to_owned(), PathBuf::from("/v/secret")),
            ("/tmp".to_owned(), PathBuf::from("/v/tmp")),
        ])
    }

    #[test]
    fn mounted_paths_are_replaced_where_they_are_paths() {
        for (text, expected) in [
            ("/etc/catena", "/v/config"),
            ("--config=/etc/catena/settings.yaml", "--config=/v/config/settings.yaml"),
            ("--a=/etc/catena/secret/key", "--a=/v/secret/key"),
            ("/etc/catena:/tmp/x,/tmp", "/v/config:/v/tmp/x,/v/tmp"),
            ("file:///tmp/x", "file:///tmp/x"),
            ("/etc/catenary", "/etc/catenary"),
            ("/opt/etc/catena", "/opt/etc/catena"),
            ("/etc/catena-2/x", "/etc/catena-2/x"),
            ("/etc/catena.d", "/etc/catena.d"),
            ("no path, größer", "no path, größer"),
            ("", ""),
        ] {
            assert_eq!(mounts().rewrite(text), expected, "{text}");
        }
    }

    #[test]
    fn a_replaced_path_is_not_replaced_again() {
        let mounts = Mounts::new([("/tmp".to_owned(), PathBuf::from("/tmp/local"))]);
        assert_eq!(mounts.rewrite("/tmp/x"), "/tmp/local/x");
        assert_eq!(mounts.local("/tmp"), Some(Path::new("/tmp/local")));
    }
}
