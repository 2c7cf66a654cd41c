//! Removes our finalizer from every object while the rights to do so still exist. After an interruption, the next run
//! handles the rest.
//!
//! A mode of its own beside the passes of the controller, which has stopped by then. It lists, writes and lists again
//! until nothing is left, so it reads and writes here.

mod kinds;
mod report;

use std::{collections::BTreeMap, future::ready, process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use backup_controller::{finalizer, metadata, settings::resource};
use clap::{Args, ValueEnum};
use futures::{StreamExt, stream};
use json_patch::PatchOperation;
use k8s_openapi::api::{
    admissionregistration::v1::MutatingAdmissionPolicyBinding, apps::v1::Deployment, batch::v1::Job,
};
use kube::{
    Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
    core::{ObjectList, Request},
    discovery::ApiResource,
};
use operator_kit::{
    run::{Arguments, Operator, Validate},
    write::Writer,
};
use operator_watch::{ApiError, Cause, Live, ObjectId, PrunedObject, Verb, WriteTarget};
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use self::{
    kinds::{Drainable, drainable},
    report::Report,
};
use crate::observe;

/// Objects per page of a list.
const PAGE_SIZE: u32 = 500;
/// Number of concurrent removals of the finalizer.
const MAX_CONCURRENT_RELEASES: usize = 16;
/// Delay before the last check after nothing was found, for finalizers that a stopping controller or a policy added
/// last.
const LAST_LOOK_DELAY: Duration = Duration::from_secs(3);
/// Longest time for the release of one object.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The failure at the end of the time.
const TIME_IS_UP: &str = "the time is up; repeat the drain to go on, or give it more time";
/// Exit code of a refused drain, which the chart's Job does not retry.
const EXIT_REFUSED: u8 = 3;

/// The options of a drain.
#[derive(Args)]
pub struct Options {
    /// Deployment of the controller in the Lease's namespace; it is deleted first, so that no finalizer is added again
    #[arg(long, value_name = "NAME")]
    deployment: Option<String>,
    /// Binding of a mutating admission policy that adds the finalizer; it is deleted first; can be given several times
    #[arg(long, value_name = "NAME")]
    policy_binding: Vec<String>,
    /// Handling of objects that are waiting for their backup
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = HeldObjects::Release)]
    held_objects: HeldObjects,
    /// Job in the Lease's namespace that runs this drain; the time limit counts from its creation on
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Time limit in seconds; no release begins in its last quarter, which is for the Events
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    deadline: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HeldObjects {
    /// Release them without one.
    #[value(name = "Release")]
    Release,
    /// Drain nothing.
    #[value(name = "Refuse")]
    Refuse,
}

impl HeldObjects {
    /// A patch that removes the finalizer from an object. The server tests the preconditions: one that is deleted after it
    /// was listed is held by now, and is handled as such in the next round.
    fn patch(self, object: &Found) -> Option<Vec<PatchOperation>> {
        let (uid, finalizers) = (ObjectId::of(object).uid, object.finalizers());
        match self {
            Self::Release if is_held(object) => finalizer::remove(uid, finalizers),
            Self::Release | Self::Refuse => finalizer::remove_from_living(uid, finalizers),
        }
    }
}

/// The part of the settings that a drain needs. Mistakes in the rest must not prevent an uninstall.
#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    kinds: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    api_version: String,
    kind: String,
    resource: String,
}

type Found = PrunedObject;

impl Entry {
    fn resource(&self) -> Result<ApiResource, String> {
        resource(&self.api_version, &self.kind, &self.resource)
    }
}

impl Settings {
    /// Each kind once, however many entries it has.
    fn resources(&self) -> Vec<ApiResource> {
        let kinds = self.kinds.values().filter_map(|kind| kind.resource().ok());
        let kinds = kinds.map(|kind| ((kind.group.clone(), kind.plural.clone()), kind));
        kinds.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let problem = |(id, kind): (&String, &Entry)| {
            Some(format!("kinds.{id}.apiVersion: {}", kind.resource().err()?))
        };
        let problems: Vec<String> = self.kinds.iter().filter_map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Drains every kind of the settings.
pub async fn run(arguments: Arguments, options: &Options) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let operator = &Operator::<Settings>::start(crate::IDENTITY, arguments).await?;
    let client = operator.client.clone();
    let settings = operator.settings.current();
    let kinds = settings.resources();
    let kinds = match drainable(&client, &operator.discovery, kinds).await? {
        Drainable::Served(kinds) => kinds,
        Drainable::Obstacle(obstacle) => {
            tracing::error!("{obstacle}");
            return Ok(ExitCode::from(EXIT_REFUSED));
        }
    };
    if options.held_objects == HeldObjects::Refuse {
        let held = held(&client, &kinds).await?;
        if !held.is_empty() {
            tracing::error!("{}", refusal(&held));
            return Ok(ExitCode::from(EXIT_REFUSED));
        }
    }
    let (limit, held_objects) = (Duration::from_secs(options.deadline.into()), options.held_objects);
    let passed = match &options.job {
        Some(job) => age(&client, operator.namespace(), job).await.unwrap_or_else(|error| {
            tracing::warn!("its Job may end before it does: {error:#}");
            Duration::ZERO
        }),
        None => Duration::ZERO,
    };
    // The last quarter is for the report, also after a release without an answer.
    let request_timeout = REQUEST_TIMEOUT.min(limit / 4);
    let until = begun + (limit / 4 * 3).saturating_sub(request_timeout + passed);
    ensure!(Instant::now() < until, TIME_IS_UP);
    for name in &options.policy_binding {
        let kind = ApiResource::erase::<MutatingAdmissionPolicyBinding>(&());
        delete(operator, &kind, "", name).await?;
    }
    if let Some(name) = &options.deployment {
        delete(operator, &ApiResource::erase::<Deployment>(&()), operator.namespace(), name).await?;
    }
    let (writer, mut report) = (operator.writer.clone(), Report::new(operator.events.clone(), limit / 4));
    let drain = Drain { client: &client, writer: &writer, until, request_timeout, held_objects };
    let work = drain.until_empty(&mut report, &kinds);
    let outcome = operator.with_lease(Box::pin(work)).await;
    report.end().await;
    outcome
}

/// One run of the drain.
struct Drain<'d> {
    client: &'d Client,
    writer: &'d Writer,
    /// No release begins later, so that each one that begins has an outcome to report.
    until: Instant,
    /// Time limit of the release of one object.
    request_timeout: Duration,
    held_objects: HeldObjects,
}

/// The outcome of draining a kind once.
enum Drained {
    /// The number of objects that had the finalizer.
    Found(usize),
    /// Objects wait for their backup, and none may be released without one.
    Refused(Vec<String>),
}

impl Drain<'_> {
    /// Drains all kinds until no object has the finalizer. A kind that fails keeps no other from being drained.
    async fn until_empty(&self, report: &mut Report, kinds: &[ApiResource]) -> anyhow::Result<ExitCode> {
        let mut total = 0;
        let mut is_empty = false;
        loop {
            let (mut found, mut failed) = (0, None);
            for kind in kinds {
                match self.once(report, kind).await {
                    Ok(Drained::Found(count)) => found += count,
                    Ok(Drained::Refused(held)) => {
                        tracing::error!(
                            "{}; the controller has been stopped: start it again with helm rollback, to the last revision in helm history",
                            refusal(&held)
                        );
                        return Ok(ExitCode::from(EXIT_REFUSED));
                    }
                    Err(error) => {
                        failed.get_or_insert(error);
                    }
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            total += found;
            if found == 0 && is_empty {
                tracing::info!(total, "no object has the finalizer any more");
                return Ok(ExitCode::SUCCESS);
            }
            is_empty = found == 0;
            if is_empty {
                tokio::time::sleep(LAST_LOOK_DELAY).await;
            }
        }
    }

    /// Removes the finalizer from the objects of a kind. A failure keeps no other object from being released and reported.
    async fn once(&self, report: &mut Report, kind: &ApiResource) -> anyhow::Result<Drained> {
        let objects = timeout_at(self.until, protected(self.client, kind)).await.context(TIME_IS_UP)??;
        let held = held_of(kind, &objects);
        if self.held_objects == HeldObjects::Refuse && !held.is_empty() {
            return Ok(Drained::Refused(held));
        }
        let count = objects.len();
        let has_time = |_: &Found| ready(Instant::now() < self.until);
        let released = stream::iter(objects).take_while(has_time).map(|object| async move {
            let released = timeout(self.request_timeout, self.release(kind, &object)).await;
            (released.unwrap_or_else(|_| Err(no_answer(kind, &object))), object)
        });
        let mut released = released.buffer_unordered(MAX_CONCURRENT_RELEASES);
        let (mut ended, mut failed) = (0, None);
        while let Some((outcome, object)) = released.next().await {
            ended += 1;
            match outcome {
                Ok(true) if is_held(&object) => report.released(kind, &object),
                Ok(_) => {}
                Err(error) => {
                    let title = title(kind, &object);
                    tracing::warn!("could not drain {title}: {error}");
                    if is_held(&object) && error.may_have_taken_effect() {
                        report.perhaps_released(kind, &object);
                    }
                    failed.get_or_insert((error, title));
                }
            }
        }
        if let Some((error, title)) = failed {
            return Err(error).with_context(|| format!("could not drain {title}"));
        }
        ensure!(ended == count, TIME_IS_UP);
        if count > 0 {
            tracing::info!(kind = kind.kind, count, "drained");
        }
        Ok(Drained::Found(count))
    }

    /// Removes the finalizer from an object. Returns whether this write did so.
    async fn release(&self, kind: &ApiResource, object: &Found) -> Result<bool, ApiError> {
        let id = ObjectId::of(object);
        let Some(patch) = self.held_objects.patch(object) else { return Ok(false) };
        if is_held(object) {
            // Before the write, because the object may be gone with it.
            tracing::info!(kind = kind.kind, object = %id, "releasing it without a proven backup");
        }
        let unwatched = WriteTarget::unwatched(kind.clone());
        match self.writer.for_object(id).json_patch(&unwatched, id, &patch).await {
            Ok(()) => Ok(true),
            // It is gone or changed; the next round finds out.
            Err(error) if error.is_stale() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The objects that wait for their backup.
async fn held(client: &Client, kinds: &[ApiResource]) -> anyhow::Result<Vec<String>> {
    let mut held = Vec::new();
    for kind in kinds {
        held.extend(held_of(kind, &protected(client, kind).await?));
    }
    Ok(held)
}

fn held_of(kind: &ApiResource, objects: &[Found]) -> Vec<String> {
    objects.iter().filter(|object| is_held(object)).map(|object| title(kind, object)).collect()
}

/// Whether an object waits for its backup.
fn is_held(object: &Found) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

fn refusal(held: &[String]) -> String {
    format!(
        "{} objects are waiting for their backup, and drain.heldObjects is Refuse: {}; wait until they are gone, or release them with the annotation catena.dev/force-release: <uid> <reason>",
        held.len(),
        held.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ")
    )
}

/// The failure of a release without any answer.
fn no_answer(kind: &ApiResource, object: &Found) -> ApiError {
    let object = (&*kind.kind, ObjectId::of(object).name);
    ApiError::new(Verb::Write, object, Cause::Silent, "there was no answer in time")
}

/// The objects of a kind that have the finalizer. It fails if the kind is no longer served: whether its objects are still
/// stored is found out by the next try.
async fn protected(client: &Client, kind: &ApiResource) -> anyhow::Result<Vec<Found>> {
    let all = Request::new(DynamicObject::url_path(kind, None));
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let request = all.list_metadata(&page).map_err(kube::Error::BuildRequest)?;
        let objects = client.request::<ObjectList<Found>>(request).await;
        let objects = objects.with_context(|| format!("could not list {}", kind.plural))?;
        let has_ours = |object: &Found| finalizer::is_there(object.finalizers());
        let next = objects.metadata.continue_.clone().filter(|token| !token.is_empty());
        found.extend(objects.items.into_iter().filter(has_ours));
        match next {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// The age of the Job that runs the drain, by the server's clock: Kubernetes ends the Job at its limit, however late its pod has
/// started, and however often it was started again.
async fn age(client: &Client, namespace: &str, job: &str) -> anyhow::Result<Duration> {
    let answer = observe::live::read(client, &ApiResource::erase::<Job>(&()), namespace, job).await;
    let answer = answer.with_context(|| format!("could not look up the age of the Job {job}"))?;
    let created = answer.object.as_ref().and_then(|job| metadata::time(job, "creationTimestamp"));
    let age = created.and_then(|created| Duration::try_from(answer.at.duration_since(created)).ok());
    Ok(age.unwrap_or_default())
}

/// Deletes an object, if it exists.
async fn delete(
    operator: &Operator<Settings>,
    kind: &ApiResource,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let found = Live::metadata(&operator.client, kind, namespace, name).await;
    let Some(found) = found.with_context(|| format!("could not look up {} {name}", kind.kind))? else {
        return Ok(());
    };
    let (writer, id) = (operator.writer.clone(), ObjectId::from(&found));
    let unwatched = WriteTarget::unwatched(kind.clone());
    let deleted = writer.for_object(id).delete(&unwatched, id, DeleteParams::default()).await;
    deleted.with_context(|| format!("could not delete {} {name}", kind.kind))
}

fn title(kind: &ApiResource, object: &Found) -> String {
    format!("{} {}", kind.kind, ObjectId::of(object))
}

#[cfg(test)]
mod tests;
