//! Counts the requests of a subject's controllers in the audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
};

use anyhow::{Context, Result};
use local_cluster::LocalCluster;

use super::figure::{Figure, Unit};
use crate::audit::Line;

/// A position in the audit log.
pub struct Requests {
    offset: u64,
}

/// The users whose requests count.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    pub users: Vec<String>,
    /// A user that reads on behalf of several controllers: only its reads of these resources count.
    pub reader: Option<(String, Vec<&'static str>)>,
}

/// Counted requests.
#[derive(Debug, Default, PartialEq)]
pub struct Counts {
    /// Creates, updates, patches and deletes, other than of Leases.
    pub writes: usize,
    /// Gets, lists, started watches and reviews of rights, other than of Leases.
    pub reads: usize,
    /// The lists among the reads.
    pub lists: usize,
    /// Requests for Leases, most of which renew one.
    pub leases: usize,
    /// Requests with a code that is no success, other than reads of what is not there.
    pub refused: usize,
    /// The refused ones with code 409.
    pub conflicts: usize,
    /// The refused ones with code 429.
    pub too_many: usize,
    /// All of them, by verb, resource and code.
    pub by_kind: BTreeMap<String, usize>,
    /// The first message of each refused kind.
    pub messages: BTreeMap<String, String>,
}

impl Requests {
    /// The present end of the log.
    pub fn from_now(cluster: &LocalCluster) -> Result<Self> {
        let log = File::open(cluster.audit_log()).context("could not open the audit log")?;
        Ok(Self { offset: log.metadata()?.len() })
    }

    /// The requests of the callers since then.
    pub fn since(&self, cluster: &LocalCluster, callers: &Callers) -> Result<Counts> {
        let mut log = File::open(cluster.audit_log()).context("could not open the audit log")?;
        log.seek(SeekFrom::Start(self.offset))?;
        Counts::of(BufReader::new(log).lines(), callers)
    }
}

impl Counts {
    fn of(lines: impl Iterator<Item = io::Result<String>>, callers: &Callers) -> Result<Self> {
        let mut counts = Self::default();
        for line in lines {
            // The first and the last line may be incomplete.
            let Ok(line) = serde_json::from_str::<Line>(&line?) else { continue };
            if is_an_answer(&line) && callers.include(&line) {
                counts.add(line);
            }
        }
        Ok(counts)
    }

    fn add(&mut self, line: Line) {
        let code = line.response_status.code;
        let resource = match line.object_ref.as_ref() {
            None => "no object".to_owned(),
            Some(object) if object.subresource.is_empty() => object.resource.clone(),
            Some(object) => format!("{}/{}", object.resource, object.subresource),
        };
        if about(&line) == "leases" {
            self.leases += 1;
        } else if is_write(&line) {
            self.writes += 1;
        } else {
            self.reads += 1;
            self.lists += usize::from(line.verb == "list");
        }
        let kind = format!("{} {resource} → {code}", line.verb);
        let is_refused = !(200..300).contains(&code) && (code != 404 || is_write(&line));
        if is_refused {
            self.refused += 1;
            self.conflicts += usize::from(code == 409);
            self.too_many += usize::from(code == 429);
            self.messages.entry(kind.clone()).or_insert(line.response_status.message);
        }
        *self.by_kind.entry(kind).or_default() += 1;
    }

    /// The figures for this number of objects.
    pub fn figures(&self, objects: usize) -> Vec<Figure> {
        vec![
            Figure::count("writes", self.writes),
            Figure::new("writes per object", Unit::PerObject, ratio(self.writes, objects)),
            Figure::count("reads", self.reads),
            Figure::new("reads per object", Unit::PerObject, ratio(self.reads, objects)),
            Figure::count("lists", self.lists),
            Figure::count("requests for Leases", self.leases),
            Figure::count("refused requests", self.refused),
            Figure::count("conflicts", self.conflicts),
            Figure::count("too many requests", self.too_many),
        ]
    }

    /// The kinds of requests in one line, and the first message of each that was refused.
    pub fn lines(&self, objects: usize) -> String {
        let kind =
            |(kind, count): (&String, &usize)| format!("{kind}: {count} ({:.2})", ratio(*count, objects));
        let kinds: Vec<String> = self.by_kind.iter().map(kind).collect();
        let refused = self.messages.iter().map(|(kind, message)| format!("  the first {kind}: {message}\n"));
        format!("  requests (per object): {}\n{}", kinds.join(", "), refused.collect::<String>())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
fn ratio(count: usize, objects: usize) -> f64 {
    count as f64 / objects as f64
}

/// A watch is logged when it starts and when it ends, and any other request when it ends.
fn is_an_answer(line: &Line) -> bool {
    match line.stage.as_str() {
        "ResponseStarted" => line.verb == "watch",
        _ => line.verb != "watch" || line.response_status.code >= 400,
    }
}

fn is_write(line: &Line) -> bool {
    // A review is a question, although it is created.
    matches!(line.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
        && !about(line).ends_with("reviews")
}

fn about(line: &Line) -> &str {
    line.object_ref.as_ref().map(|object| object.resource.as_str()).unwrap_or_default()
}

impl Callers {
    fn include(&self, line: &Line) -> bool {
        let user = &line.user.username;
        let reads = |(reader, resources): &(String, Vec<&str>)| {
            user == reader && !is_write(line) && resources.contains(&about(line))
        };
        self.users.contains(user) || self.reader.as_ref().is_some_and(reads)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(user: &str, stage: &str, verb: &str, resource: &str, code: u16) -> String {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        json!({
            "stage": stage, "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource, "subresource": sub},
            "responseStatus": {"code": code, "message": format!("said of {resource}")},
        })
        .to_string()
    }

    fn counts(lines: &[String]) -> Counts {
        let reader = Some(("all".to_owned(), vec!["pods"]));
        let callers = Callers { users: vec!["us".into()], reader };
        Counts::of(lines.iter().cloned().map(Ok), &callers).unwrap()
    }

    #[test]
    fn requests_are_counted_by_verb_resource_and_code() {
        let complete = |verb, resource, code| line("us", "ResponseComplete", verb, resource, code);
        let found = counts(&[
            "\"cut off\"}".to_owned(),
            complete("create", "pods", 201),
            complete("create", "pods", 201),
            complete("patch", "basicdeployments/status", 409),
            complete("get", "pods", 404),
            complete("delete", "pods", 404),
            complete("list", "pods", 429),
            complete("update", "leases", 200),
            complete("create", "selfsubjectaccessreviews", 201),
            line("somebody", "ResponseComplete", "create", "pods", 201),
            "{\"verb\": \"cre".to_owned(),
        ]);
        assert_eq!((found.writes, found.reads, found.lists, found.leases), (4, 3, 1, 1));
        assert_eq!((found.refused, found.conflicts, found.too_many), (3, 1, 1));
        let by_kind = |kind: &str| found.by_kind.get(kind).copied();
        assert_eq!(by_kind("create pods → 201"), Some(2));
        assert_eq!(by_kind("patch basicdeployments/status → 409"), Some(1));
        assert_eq!(by_kind("get pods → 404"), Some(1));
        assert_eq!(found.by_kind.len(), 7);
        assert_eq!(found.messages["delete pods → 404"], "said of pods");
        assert_eq!(found.messages.len(), 3);
        let lines = found.lines(2);
        assert!(lines.contains("create pods → 201: 2 (1.00), "), "{lines}");
        assert!(
            lines.ends_with("  the first patch basicdeployments/status → 409: said of basicdeployments\n"),
            "{lines}"
        );
        assert_eq!(found.figures(2)[1], Figure::new("writes per object", Unit::PerObject, 2.0));
    }

    #[test]
    fn a_watch_counts_once_when_it_starts_or_is_refused() {
        let found = counts(&[
            line("us", "ResponseStarted", "watch", "pods", 200),
            line("us", "ResponseComplete", "watch", "pods", 200),
            line("us", "ResponseComplete", "watch", "pods", 403),
            line("us", "ResponseStarted", "list", "pods", 200),
            line("us", "ResponseComplete", "list", "pods", 200),
        ]);
        assert_eq!((found.reads, found.lists, found.refused), (3, 1, 1), "{found:?}");
    }

    #[test]
    fn of_a_reader_for_many_only_the_reads_of_our_resources_count() {
        let found = counts(&[
            line("all", "ResponseComplete", "list", "pods", 200),
            line("all", "ResponseComplete", "list", "nodes", 200),
            line("all", "ResponseComplete", "create", "pods", 201),
        ]);
        assert_eq!((found.reads, found.writes), (1, 0), "{found:?}");
    }
}
