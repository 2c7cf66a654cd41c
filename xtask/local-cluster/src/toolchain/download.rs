//! Downloads one program. Nothing can be run before its sum is known to be right.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    io::{self, BufReader, ErrorKind, Read, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use ureq::{
    Agent, Body, ResponseExt,
    http::{Response, Uri},
    tls::{RootCerts, TlsConfig},
};

use super::downloads::{Download, Sum, WAYS_OUT, address, hex, origin};
use crate::{files, progress::Step};

/// What to do when the cache is full.
const ROOM: &str = "free some space there, or set CATENA_CACHE to another directory";

/// The size of the largest list of sums.
const LIST_BYTES: u64 = 1_000_000;

/// How long a server may keep a download waiting, and how much it may send.
#[derive(Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    pub response: Duration,
    /// Between two pieces of the file.
    pub idle: Duration,
    /// For the whole file.
    pub whole: Duration,
    /// Of the file, and of the program in it.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let [connect, response, idle, whole] = [10, 30, 30, 900].map(Duration::from_secs);
        Self { connect, response, idle, whole, bytes: 500_000_000 }
    }
}

/// Downloads one program after another.
#[derive(Default)]
pub struct Downloader {
    limits: Limits,
    /// The origins that did not answer once, and are not waited for again.
    unreachable: BTreeSet<String>,
}

impl Downloader {
    /// Downloads a program to `target`, unless another run has just done so.
    pub fn fetch(&mut self, name: &str, download: &Download, target: &Path) -> Result<()> {
        let origin = origin(&download.url);
        if self.unreachable.contains(&origin) {
            bail!("{name} was not downloaded: {origin} has just failed to answer");
        }
        self.try_fetch(name, download, target).map_err(|error| {
            if is_unanswered(&error) {
                self.unreachable.insert(origin);
            }
            anyhow!("{name} was not downloaded from {}: {error:#}; {}", download.url, way_out(&error))
        })
    }

    fn try_fetch(&self, name: &str, download: &Download, target: &Path) -> Result<()> {
        let directory = target.parent().context("the cache is no directory")?;
        files::create_directory(directory)?;
        let _lock = files::lock(&directory.join(".lock"), "downloads the same program")?;
        if target.is_file() {
            return Ok(());
        }
        let step = Step::start(format!("downloading {name}"));
        let agent = agent(self.limits, &download.url);
        let expected = match &download.sum {
            Sum::Pinned(sum) => sum.clone(),
            Sum::Published(url) => {
                let answer = get(&agent, url).with_context(|| url.to_string())?;
                let list = answer.into_body().into_with_config().limit(LIST_BYTES).read_to_string();
                let list = list.with_context(|| url.to_string())?;
                download.sum_in(&list).with_context(|| format!("{url} has no sum of this file"))?
            }
        };
        let mut response = get(&agent, &download.url)?;
        let mut file = unfinished(directory, ".download")?;
        let found = self.receive(&mut response, &mut file, &step)?;
        ensure!(found == expected, "its SHA-256 sum is {found} instead of {expected}, the {}", download.sum);
        let program = match &download.member {
            Some(member) => self.extract(file, member, directory)?,
            None => file,
        };
        let size = megabytes(program.as_file().metadata()?.len());
        program.as_file().set_permissions(Permissions::from_mode(0o755))?;
        // What has its final name is never looked at again.
        program.as_file().sync_all().with_context(|| format!("could not write {}", target.display()))?;
        program.persist(target).with_context(|| format!("could not write {}", target.display()))?;
        step.done(format!("{size} MB, checked by the {}", download.sum));
        Ok(())
    }

    /// Writes an answer to a file, and returns its sum.
    fn receive(&self, response: &mut Response<Body>, file: &mut impl Write, step: &Step) -> Result<String> {
        let total = response
            .body()
            .content_length()
            .map_or(String::new(), |total| format!(" / {}", megabytes(total)));
        let mut body = response.body_mut().with_config().limit(self.limits.bytes).reader();
        let (mut hasher, mut received) = (Sha256::new(), 0);
        let mut piece = vec![0; 64 * 1024];
        loop {
            let length = body.read(&mut piece).with_context(|| format!("it ended after {received} bytes"))?;
            if length == 0 {
                return Ok(hex(&hasher.finalize()));
            }
            hasher.update(&piece[..length]);
            file.write_all(&piece[..length]).context("it could not be written to the cache")?;
            received += length as u64;
            step.note(format!("{}{total} MB", megabytes(received)));
        }
    }

    fn extract(&self, archive: NamedTempFile, member: &Path, directory: &Path) -> Result<NamedTempFile> {
        let mut archive = archive.into_file();
        archive.rewind()?;
        let content = GzDecoder::new(BufReader::new(archive)).take(self.limits.bytes);
        for entry in tar::Archive::new(content).entries()? {
            let mut entry = entry?;
            if entry.path()? == member {
                let mut program = unfinished(directory, ".extracted")?;
                let size = entry.size();
                let is_file = entry.header().entry_type().is_file() && size > 0;
                ensure!(is_file, "{} is no file in the archive", member.display());
                ensure!(io::copy(&mut entry, &mut program)? == size, "{} is too large", member.display());
                return Ok(program);
            }
        }
        bail!("the archive has no {}", member.display())
    }
}

fn get(agent: &Agent, url: &Uri) -> Result<Response<Body>> {
    let response = agent.get(url).call()?;
    // The address after redirects.
    address("redirect", &response.get_uri().to_string())?;
    Ok(response)
}

/// Whether a request has got no answer, or none that goes on.
fn is_unanswered(error: &Error) -> bool {
    use ureq::Error::{ConnectionFailed, HostNotFound, Io, Timeout};
    // That of an answer is inside an error of reading.
    let is_unanswered = |cause: &(dyn std::error::Error + 'static)| {
        let read = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let error = cause.downcast_ref().or_else(|| read?.downcast_ref());
        matches!(error, Some(ConnectionFailed | HostNotFound | Io(_) | Timeout(_)))
    };
    error.chain().any(is_unanswered)
}

/// What to do about an error.
fn way_out(error: &Error) -> &'static str {
    let is_full =
        |error: &io::Error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_full) { ROOM } else { WAYS_OUT }
}

/// A file that is removed unless it gets its final name. One that a killed run has left is replaced.
fn unfinished(directory: &Path, name: &str) -> Result<NamedTempFile> {
    fs::remove_file(directory.join(name)).ok();
    Ok(tempfile::Builder::new().prefix(name).rand_bytes(0).tempfile_in(directory)?)
}

fn agent(limits: Limits, url: &Uri) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let is_https = url.scheme_str() == Some("https");
    let config = Agent::config_builder()
        .tls_config(tls)
        // Also after a redirect.
        .https_only(is_https)
        .timeout_resolve(Some(limits.connect))
        .timeout_connect(Some(limits.connect))
        .timeout_send_request(Some(limits.response))
        .timeout_recv_response(Some(limits.response))
        .timeout_per_read(Some(limits.idle))
        .timeout_recv_body(Some(limits.whole));
    // A loopback address means another machine to a proxy.
    let config = if is_https { config } else { config.proxy(None) };
    config.build().new_agent()
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, path::PathBuf, thread, time::Instant};

    use flate2::{Compression, write::GzEncoder};
    use tempfile::TempDir;

    use super::*;
    use crate::toolchain::file_server::{Answer, FileServer};

    const PROGRAM: &[u8] = b"#!/bin/sh\necho v1.37.1\n";

    fn sum(file: &[u8]) -> String {
        hex(&Sha256::digest(file))
    }

    fn archive(member: &str) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, content) in [("linux-amd64/README.md", &b"# helm"[..]), (member, PROGRAM)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, content).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    /// Downloads into a directory that was empty before.
    fn fetch(downloader: &mut Downloader, entry: &str) -> (Result<()>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let download = serde_saphyr::from_str(entry).unwrap();
        let result = downloader.fetch("kubectl v1.37.1", &download, &directory.path().join("kubectl"));
        (result, directory)
    }

    fn files(directory: &TempDir) -> Vec<PathBuf> {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| !path.ends_with(".lock")).collect()
    }

    #[test]
    fn a_program_with_the_expected_sum_can_be_run() {
        let helm = archive("linux-amd64/helm");
        let list = format!("{}  other.tar.gz\n{}  helm.tar.gz\n", "0".repeat(64), sum(&helm));
        let server = FileServer::start([
            ("/kubectl", Answer::File(PROGRAM.to_vec())),
            ("/kubectl.sha256", Answer::File(sum(PROGRAM).into())),
            ("/helm.tar.gz", Answer::MovedTo("/elsewhere/5")),
            ("/elsewhere/5", Answer::File(helm)),
            ("/SHA256SUMS", Answer::File(list.into())),
        ]);
        let url = &server.url;
        for entry in [
            format!("url: {url}/kubectl\nsha256: {}", sum(PROGRAM).to_uppercase()),
            format!("url: {url}/kubectl\nsha256From: {url}/kubectl.sha256"),
            format!("url: {url}/helm.tar.gz\nsha256From: {url}/SHA256SUMS\nmember: linux-amd64/helm"),
        ] {
            let (result, directory) = fetch(&mut Downloader::default(), &entry);
            result.unwrap();
            let [program] = &files(&directory)[..] else { panic!("{entry}") };
            assert_eq!(fs::read(program).unwrap(), PROGRAM, "{entry}");
            assert_eq!(fs::metadata(program).unwrap().permissions().mode() & 0o777, 0o755, "{entry}");
        }
    }

    #[test]
    fn a_download_that_fails_says_why_and_leaves_nothing() {
        let (helm, zeros) = (archive("linux-amd64/helm3"), "0".repeat(64));
        let server = FileServer::start([
            ("/kubectl", Answer::File(PROGRAM.to_vec())),
            ("/kubectl.sha256", Answer::File(zeros.clone().into())),
            ("/page", Answer::File(b"<html>Please log in</html>".to_vec())),
            ("/cut", Answer::Cut(PROGRAM.to_vec())),
            ("/stalled", Answer::Stalled(PROGRAM.to_vec())),
            ("/large", Answer::File(vec![0; 1_000_001])),
            ("/helm.tar.gz", Answer::File(helm.clone())),
            ("/silent", Answer::Silence),
        ]);
        let (url, right) = (&server.url, format!("sha256: {}", sum(PROGRAM)));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let short = Duration::from_millis(300);
        for (file, sum, why) in [
            ("/kubectl", format!("sha256: {zeros}"), "instead of 000"),
            ("/kubectl", format!("sha256From: {url}/kubectl.sha256"), "the published sum from 127.0.0.1"),
            ("/kubectl", format!("sha256From: {url}/page"), "/page has no sum of this file"),
            ("/kubectl", format!("sha256From: {url}/none"), "/none: http status: 404"),
            ("/none", right.clone(), "http status: 404"),
            ("/cut", right.clone(), "it ended after"),
            ("/large", right.clone(), "larger than"),
            (
                "/helm.tar.gz",
                format!("sha256: {}\nmember: linux-amd64/helm", sum(&helm)),
                "no linux-amd64/helm",
            ),
            ("/stalled", right.clone(), "timeout"),
            ("/silent", right.clone(), "timeout"),
            ("closed", right, "refused"),
        ] {
            let url =
                if file == "closed" { format!("http://{closed}/kubectl") } else { format!("{url}{file}") };
            let mut limits = Limits { bytes: 1_000_000, ..Limits::default() };
            if why == "timeout" {
                limits = Limits { response: short, idle: short, ..limits };
            }
            let mut downloader = Downloader { limits, ..Downloader::default() };
            let (result, directory) = fetch(&mut downloader, &format!("url: {url}\n{sum}"));
            let said = result.unwrap_err().to_string();
            for part in ["kubectl v1.37.1 was not downloaded", &url, why, WAYS_OUT] {
                assert!(said.contains(part), "{file}: {said}");
            }
            assert_eq!(files(&directory), Vec::<PathBuf>::new(), "{file}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_or_go_on_is_waited_for_once() {
        for answer in [Answer::Silence, Answer::Stalled(PROGRAM.to_vec())] {
            let server = FileServer::start([("/kubectl", answer)]);
            let short = Duration::from_millis(300);
            let limits = Limits { response: short, idle: short, ..Limits::default() };
            let mut downloader = Downloader { limits, ..Downloader::default() };
            let entry = format!("url: {}/kubectl\nsha256: {}", server.url, sum(PROGRAM));
            fetch(&mut downloader, &entry).0.unwrap_err();
            let said = fetch(&mut downloader, &entry).0.unwrap_err().to_string();
            assert!(said.contains("has just failed to answer"), "{said}");
            // Its thread may not have run yet.
            let begun = Instant::now();
            while server.asked().is_empty() && begun.elapsed() < Duration::from_secs(10) {
                thread::sleep(short);
            }
            assert_eq!(server.asked(), ["/kubectl"]);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_no_reason_for_another_server() {
        let server = FileServer::start([("/kubectl", Answer::File(PROGRAM.to_vec()))]);
        let url: Uri = format!("{}/kubectl", server.url).parse().unwrap();
        let downloader = Downloader::default();
        let mut response = get(&agent(downloader.limits, &url), &url).unwrap();
        let mut full = fs::File::options().write(true).open("/dev/full").unwrap();
        let error = downloader.receive(&mut response, &mut full, &Step::start("downloading")).unwrap_err();
        assert_eq!(way_out(&error), ROOM, "{error:#}");
        assert_eq!(way_out(&anyhow!("its SHA-256 sum is another")), WAYS_OUT);
    }
}
