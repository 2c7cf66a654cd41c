//! Where the programs are released, and the sum that each must have: `control-plane/downloads.yaml`, or a mirror's file.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt, fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::{Error, Result, anyhow, bail, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use ureq::http::Uri;

use super::pins::Tool;
use crate::cache;

const RELEASES: &str = include_str!("../../control-plane/downloads.yaml");

/// What to do when a download fails.
pub const WAYS_OUT: &str = "set CATENA_DOWNLOADS to the file of a mirror that works, or CATENA_FROM_SOURCE=1";

/// The downloads by program and architecture. A program without one is built from source.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub struct Downloads(BTreeMap<Tool, BTreeMap<Architecture, Download>>);

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Architecture {
    Amd64,
    Arm64,
}

/// All of these programs are for Linux.
const HERE: Option<Architecture> = match (cfg!(target_os = "linux"), cfg!(target_arch = "aarch64")) {
    (true, true) => Some(Architecture::Arm64),
    (true, false) if cfg!(target_arch = "x86_64") => Some(Architecture::Amd64),
    _ => None,
};

/// One released file.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Entry")]
pub struct Download {
    pub url: Uri,
    pub sum: Sum,
    /// The program's path, if the file is an archive.
    pub member: Option<PathBuf>,
}

/// The SHA-256 sum of a file, in lower case, or a list at the same origin that has it.
#[derive(Clone)]
pub enum Sum {
    Pinned(String),
    Published(Uri),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    url: String,
    sha256: Option<String>,
    sha256_from: Option<String>,
    member: Option<PathBuf>,
}

/// Whether everything is to be built from source, by choice.
pub fn are_off() -> bool {
    set("CATENA_FROM_SOURCE").is_some_and(|value| value != "0")
}

/// The value of a variable that has one.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

impl Downloads {
    /// None if all is to be built from source; otherwise those of the user's file, or those of the projects themselves.
    pub fn chosen() -> Result<Self> {
        if are_off() {
            return Ok(Self::default());
        }
        match set("CATENA_DOWNLOADS").map(PathBuf::from) {
            Some(path) => Self::read(&path).map_err(|error| {
                let file = path.display();
                anyhow!(
                    "CATENA_DOWNLOADS={file} cannot be used: {error}; correct it, or unset CATENA_DOWNLOADS"
                )
            }),
            None => Self::parse(RELEASES),
        }
    }

    fn read(path: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> Result<Self> {
        serde_saphyr::from_str(text).map_err(|error| anyhow!("{}", error.without_snippet()))
    }

    /// The download of a program for this machine.
    pub fn of(&self, tool: Tool) -> Option<&Download> {
        self.0.get(&tool)?.get(&HERE?)
    }
}

impl TryFrom<Entry> for Download {
    type Error = Error;

    fn try_from(entry: Entry) -> Result<Self> {
        let url = address("url", &entry.url)?;
        let sum = match (entry.sha256, entry.sha256_from) {
            (Some(sum), None) if is_sum(&sum) => Sum::Pinned(sum.to_lowercase()),
            (Some(sum), None) => bail!("sha256 must be 64 hexadecimal digits: {sum}"),
            (None, Some(list)) => {
                let list = address("sha256From", &list)?;
                ensure!(
                    origin(&list) == origin(&url),
                    "sha256From must have the origin of url, {}: {list}",
                    origin(&url)
                );
                Sum::Published(list)
            }
            _ => bail!("either sha256 or sha256From is needed beside url: {url}"),
        };
        ensure!(
            entry.member.is_some() == url.path().ends_with(".tar.gz"),
            "member is needed for a .tar.gz, and only there: {url}"
        );
        Ok(Self { url, sum, member: entry.member })
    }
}

/// A URL whose answers nobody on the way can change.
pub fn address(field: &str, text: &str) -> Result<Uri> {
    let url: Uri = text.parse().map_err(|error| anyhow!("{field} is no URL ({error}): {text}"))?;
    let has_credentials = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    ensure!(!has_credentials, "{field} must have no user and password, because messages show it");
    let host = url.host().unwrap_or_default();
    let is_loopback = host == "localhost"
        || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    match url.scheme_str() {
        Some("https") => Ok(url),
        Some("http") if is_loopback => Ok(url),
        _ => bail!("{field} must begin with https://, or with http:// and a loopback address: {text}"),
    }
}

/// Scheme, host and port.
pub fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let port = url.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    format!("{scheme}://{}:{port}", url.host().unwrap_or_default())
}

impl Download {
    /// The place of the program in the cache: another one for each URL and sum.
    pub fn cached(&self, tool: Tool) -> Result<PathBuf> {
        let sum = match &self.sum {
            Sum::Pinned(sum) => sum.clone(),
            Sum::Published(list) => list.to_string(),
        };
        let key = hex(&Sha256::digest(format!("{} {sum} {:?}", self.url, self.member))[..8]);
        Ok(cache::directory()?.join("tools/downloads").join(key).join(tool.binary()))
    }

    /// The sum of this file in a published list: a lone sum, or lines of sum and name.
    pub fn sum_in(&self, list: &str) -> Option<String> {
        let file = self.url.path().rsplit('/').next()?;
        let sum = list.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let sum = words.next()?;
            let name = words.next().map_or(file, |name| name.trim_start_matches('*'));
            (name == file).then_some(sum)
        })?;
        is_sum(sum).then(|| sum.to_lowercase())
    }
}

fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|digit| digit.is_ascii_hexdigit())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

impl fmt::Display for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "downloaded from {}, {}", self.url.host().unwrap_or_default(), self.sum)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(_) => write!(f, "pinned sum"),
            Self::Published(list) => write!(f, "published sum from {}", list.host().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{again, toolchain::pins};

    #[test]
    fn every_url_has_the_version_of_go_mod() {
        let downloads = Downloads::parse(RELEASES).unwrap();
        for tool in Tool::ALL.into_iter().filter(|tool| *tool != Tool::Kwok) {
            for (architecture, name) in [(Architecture::Amd64, "amd64"), (Architecture::Arm64, "arm64")] {
                let Download { url, sum, member } = &downloads.0[&tool][&architecture];
                let version = pins::version(tool).unwrap();
                let Sum::Published(list) = sum else { panic!("{url}") };
                for text in [url.to_string(), list.to_string()] {
                    assert!(
                        text.contains(&format!("/{version}/")) || text.contains(&format!("-{version}-")),
                        "{text}"
                    );
                }
                assert!(url.path().contains(name), "{url}");
                assert!(member.as_ref().is_none_or(|member| member.ends_with(tool.binary())), "{url}");
            }
        }
        assert!(!downloads.0.contains_key(&Tool::Kwok), "say in the file where the sum comes from");
    }

    #[test]
    fn a_sum_is_found_in_each_form_of_a_published_list() {
        let sum = "0123456789abcdef".repeat(4);
        let download = |file| Download {
            url: format!("https://example.com/v1/{file}").parse().unwrap(),
            sum: Sum::Pinned(sum.clone()),
            member: None,
        };
        let list = format!("{}  etcd.zip\n{}  etcd.tar.gz\n", "f".repeat(64), sum.to_uppercase());
        assert_eq!(download("kubectl").sum_in(&sum), Some(sum.clone()));
        assert_eq!(download("etcd.tar.gz").sum_in(&list), Some(sum.clone()));
        assert_eq!(download("helm.tar.gz").sum_in(&format!("{sum} *helm.tar.gz")), Some(sum.clone()));
        assert_eq!(download("tar.gz").sum_in(&list), None);
        assert_eq!(download("kubectl").sum_in("<html>not found</html>"), None);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_that_names_the_field() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mirror.yaml");
        let variables = [("CATENA_DOWNLOADS", file.clone().into()), ("CATENA_FROM_SOURCE", "".into())];
        let test = "toolchain::downloads::tests::a_file_that_cannot_be_used_is_an_error_that_names_the_field";
        if !again::has(test, &variables) {
            return;
        }
        let file = PathBuf::from(env::var_os("CATENA_DOWNLOADS").unwrap());
        let said = || format!("{:#}", Downloads::chosen().map(drop).unwrap_err());
        assert!(said().contains("No such file") && said().contains("unset CATENA_DOWNLOADS"), "{}", said());

        let sum = "0".repeat(64);
        let cases = [
            ("kubelet: {}", "kubelet"),
            ("kubectl: { s390x: {} }", "s390x"),
            ("kubectl: { amd64: { sha256: x } }", "url"),
            ("kubectl: { amd64: { url: 'https://a/k', sha265: x } }", "sha265"),
            ("kubectl: { amd64: { url: 'https://a/k' } }", "either sha256 or sha256From"),
            ("kubectl: { amd64: { url: 'https://a/k', sha256: 12ab } }", "64 hexadecimal digits: 12ab"),
            ("kubectl: { amd64: { url: 'http://10.1.1.1/k', sha256: SUM } }", "url must begin with https://"),
            ("kubectl: { amd64: { url: 'https://a/k.tar.gz', sha256: SUM } }", "member is needed"),
            ("kubectl: { amd64: { url: 'https://me:secret@a/k', sha256: SUM } }", "url must have no user"),
            (
                "kubectl: { amd64: { url: 'https://a/k', sha256From: 'https://a:444/k.sha256' } }",
                "the origin of url, https://a:443: https://a:444/k.sha256",
            ),
            (
                "kubectl: { amd64: { url: 'http://[::1]/k', sha256From: 'http://b/k.sha256' } }",
                "sha256From must begin",
            ),
        ];
        for (text, named) in cases {
            fs::write(&file, text.replace("SUM", &sum)).unwrap();
            assert!(said().contains(named) && said().contains("mirror.yaml"), "{text}: {}", said());
        }
    }
}
