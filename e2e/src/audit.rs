use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{Read as _, Seek, SeekFrom},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{CHAIN, CONTROLLERS, Controller, WAIT_TIMEOUT, cluster::path_from, eventually, eventually_every};

/// Pause between reads of the log, each of which is so much work that others would wait for it.
const BETWEEN_READS: Duration = Duration::from_secs(1);

/// The requests to the API server since a point in time.
pub struct AuditLog {
    path: PathBuf,
    read: Mutex<Read>,
}

/// The part that was read already: tests that wait ask again and again.
struct Read {
    to: u64,
    is_within_a_line: bool,
    requests: Vec<Request>,
}

/// A request that the API server answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// The user.
    pub user: String,
    /// The pod whose token was used; empty if the token is not bound to one.
    pub pod: String,
    /// The verb: `create`, `patch`, `list`, `watch`, …
    pub verb: String,
    /// The resource with its subresource: `pods`, `basicdeployments/status`.
    pub resource: String,
    /// The namespace; empty if there is none.
    pub namespace: String,
    /// The name; empty if there is none, and for a create.
    pub name: String,
    /// The answer's HTTP status.
    pub code: u16,
    /// The time of its arrival.
    pub at: Timestamp,
}

/// The pod that a token is bound to, from the API server's information on its user.
const POD: &str = "authentication.kubernetes.io/pod-name";

/// Counts of requests, for messages.
#[derive(Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, usize>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl AuditLog {
    /// The log from now on.
    pub fn from_now() -> Result<Self> {
        let path = path_from("CATENA_AUDIT_LOG")?;
        let length =
            path.metadata().with_context(|| format!("there is no audit log {}", path.display()))?.len();
        // Begins with the last byte before, because a line may be incomplete now; it belongs to an earlier request.
        let read = Read { to: length.saturating_sub(1), is_within_a_line: length > 0, requests: Vec::new() };
        Ok(Self { path, read: Mutex::new(read) })
    }

    /// All requests of all users. A watch counts when it starts.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let mut read = self.read.lock();
        let mut file =
            File::open(&self.path).with_context(|| format!("could not open {}", self.path.display()))?;
        file.seek(SeekFrom::Start(read.to))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // The last line may still be incomplete.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if complete == 0 {
            return Ok(read.requests.clone());
        }
        let lines = bytes[..complete].split(|byte| *byte == b'\n').skip(usize::from(read.is_within_a_line));
        let lines: Vec<Line> = lines
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()
            .context("could not read a line of the audit log")?;
        read.is_within_a_line = false;
        read.requests.extend(lines.into_iter().filter_map(Line::request));
        read.to += complete as u64;
        Ok(read.requests.clone())
    }

    /// The requests of a controller in a namespace.
    pub fn by(&self, controller: Controller, namespace: &str) -> Result<Vec<Request>> {
        let user = controller.user();
        let all = self.requests()?.into_iter();
        Ok(all.filter(|request| request.user == user && request.namespace == namespace).collect())
    }

    /// Waits until this number of requests matches `which`, and returns them: an effect can be seen a moment before its
    /// request is logged.
    pub async fn until_logged(&self, count: usize, which: impl Fn(&Request) -> bool) -> Vec<Request> {
        eventually(&format!("{count} requests are written down"), WAIT_TIMEOUT, async || {
            let mut asked = self.requests().map_err(|error| format!("{error:#}"))?;
            asked.retain(&which);
            if asked.len() >= count { Ok(asked) } else { Err(format!("{:?}", Tally::of(&asked))) }
        })
        .await
    }

    /// Waits until the controllers of the chain have made no writes that match `which` for a while, and returns all writes
    /// before that.
    pub async fn until_quiet(
        &self,
        quiet: Duration,
        limit: Duration,
        which: impl Fn(&Request) -> bool,
    ) -> Vec<Request> {
        let users = CHAIN.map(Controller::user);
        let is_one =
            |request: &Request| users.contains(&request.user) && request.is_write() && which(request);
        self.until_none(quiet, limit, is_one).await
    }

    /// Waits until no controller has done any work for a while.
    pub async fn until_no_work(&self, quiet: Duration, limit: Duration) {
        let is_work =
            |request: &Request| CONTROLLERS.iter().any(|controller| request.is_work_of(*controller));
        self.until_none(quiet, limit, is_work).await;
    }

    async fn until_none(
        &self,
        quiet: Duration,
        limit: Duration,
        which: impl Fn(&Request) -> bool,
    ) -> Vec<Request> {
        let (mut count, mut since) = (0, Instant::now());
        let what = format!("the controllers write nothing for {quiet:?}");
        eventually_every(BETWEEN_READS, &what, limit, async || {
            let mut written = self.requests().map_err(|error| format!("{error:#}"))?;
            written.retain(&which);
            if written.len() != count {
                (count, since) = (written.len(), Instant::now());
            }
            if since.elapsed() >= quiet {
                return Ok(written);
            }
            let newest = &written[written.len().saturating_sub(20)..];
            Err(format!("{:?}; the last of them: {:?}", Tally::of(&written), Tally::of(newest)))
        })
        .await
    }
}

impl Line {
    fn request(self) -> Option<Request> {
        let is_watch = self.verb == "watch";
        let counts = match self.stage.as_str() {
            "ResponseStarted" => is_watch,
            _ => !is_watch || self.response_status.code >= 400,
        };
        let Self { object_ref, mut user, .. } = self;
        let pod = user.extra.remove(POD).and_then(|names| names.into_iter().next());
        let resource = if object_ref.subresource.is_empty() {
            object_ref.resource
        } else {
            format!("{}/{}", object_ref.resource, object_ref.subresource)
        };
        counts.then_some(Request {
            user: user.username,
            pod: pod.unwrap_or_default(),
            verb: self.verb,
            resource,
            namespace: object_ref.namespace,
            name: object_ref.name,
            code: self.response_status.code,
            at: self.request_received_timestamp,
        })
    }
}

impl Request {
    /// Whether it is a write.
    #[must_use]
    pub fn is_write(&self) -> bool {
        // A review is a question, although it is created.
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !self.resource.ends_with("accessreviews")
    }

    /// Whether it is a successful write of a controller, other than Events, which are no work, and Leases, which are
    /// the election itself.
    #[must_use]
    pub fn is_work_of(&self, controller: Controller) -> bool {
        self.user == controller.user()
            && self.is_write()
            && self.code < 300
            && !["events", "leases"].contains(&self.resource.as_str())
    }

    /// Whether it has this verb and resource.
    #[must_use]
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }
}

impl Tally {
    /// Counts requests by verb, kind and answer.
    #[must_use]
    pub fn of(requests: &[Request]) -> Self {
        let mut tally = Self::default();
        for Request { verb, resource, code, .. } in requests {
            *tally.0.entry(format!("{verb} {resource} → {code}")).or_default() += 1;
        }
        tally
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|(what, count)| format!("{count} × {what}")).collect();
        f.write_str(&all.join(", "))
    }
}
