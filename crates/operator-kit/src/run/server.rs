use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{
    Router,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::{StreamExt, stream};
use kube::Client;
use operator_watch::Cause;
use tokio::{net::TcpListener, sync::Mutex, time::Instant};

use super::settings::{SettingsHandle, TemplateSample, Validate};
use crate::{
    report::{health::Health, metrics::Metrics, settings_status::SettingsStatus},
    write::Writer,
};

/// Serves `/readyz`, `/healthz`, `/settings`, `/metrics`, and `/selftest`: whether it is ready, and whether the API
/// server takes what its templates render.
pub(crate) async fn serve<S: Validate + Send + Sync + 'static>(
    listen: SocketAddr,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    settings: Arc<SettingsStatus>,
    test: SelfTest<S>,
) -> anyhow::Result<()> {
    let test = Arc::new(test);
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another address with --listen"))?;
    let (ready, alive, tested) = (health.clone(), health.clone(), health.clone());
    let routes = Router::new()
        .route("/readyz", get(async move || answer(&ready.unready())))
        .route("/healthz", get(async move || answer(alive.dead().as_slice())))
        .route("/settings", get(async move |url: Uri| settings.page(version(&url))))
        .route("/selftest", get(async move || tested_answer(&tested, &test).await))
        .route("/metrics", get(async move || exposition(&metrics, &health)));
    axum::serve(listener, routes).await.context("the health and metrics server stopped")
}

/// The version of `?version=…`.
fn version(url: &Uri) -> Option<&str> {
    url.query()?.split('&').find_map(|pair| pair.strip_prefix("version="))
}

fn answer(problems: &[String]) -> (StatusCode, String) {
    if problems.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n") + "\n")
    }
}

async fn tested_answer<S: Validate + Send + Sync + 'static>(
    health: &Health,
    test: &Arc<SelfTest<S>>,
) -> (StatusCode, String) {
    let unready = health.unready();
    if unready.is_empty() { test.page().await } else { answer(&unready) }
}

fn exposition(metrics: &Metrics, health: &Health) -> Response {
    metrics.observed(&health.watches.observed());
    metrics.unserved.set(health.watches.unserved());
    match metrics.encode() {
        Ok(page) => {
            ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page)
                .into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Time for which a page is given again, so that a visitor cannot make the controller send many requests.
const REPEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Number of concurrent dry runs.
const MAX_CONCURRENT_TRIALS: usize = 8;

/// Tries the templates of a controller, each by a dry run with sample values.
pub(crate) struct SelfTest<S> {
    client: Client,
    /// The controller's own namespace.
    namespace: String,
    settings: SettingsHandle<S>,
    last: Mutex<Option<(Instant, (StatusCode, String))>>,
}

impl<S: Validate + Send + Sync + 'static> SelfTest<S> {
    pub fn new(client: Client, namespace: &str, settings: SettingsHandle<S>) -> Self {
        Self { client, namespace: namespace.to_owned(), settings, last: Mutex::default() }
    }

    /// The templates that the server refuses, and those of which it is not known, each with the reason; visitors that come
    /// together share the page. It is made also if its visitor leaves before, for the next one.
    async fn page(self: &Arc<Self>) -> (StatusCode, String) {
        let test = self.clone();
        let page = tokio::spawn(async move { test.latest().await }).await;
        page.unwrap_or_else(|panic| (StatusCode::INTERNAL_SERVER_ERROR, panic.to_string()))
    }

    async fn latest(&self) -> (StatusCode, String) {
        let mut last = self.last.lock().await;
        if let Some((at, page)) = &*last
            && at.elapsed() < REPEAT_INTERVAL
        {
            return page.clone();
        }
        let (mut refused, mut unclear) = (Vec::new(), Vec::new());
        let trials = stream::iter(self.settings.current().samples()).map(async |sample| {
            let TemplateSample { template, resource, namespace, object } = sample;
            let namespace = namespace.as_ref().unwrap_or(&self.namespace);
            (template, Writer::dry_run_create(&self.client, &resource, namespace, &object).await)
        });
        for (template, tried) in trials.buffered(MAX_CONCURRENT_TRIALS).collect::<Vec<_>>().await {
            match tried {
                Ok(()) => {}
                // With sample values, only an unknown field is the fault of the template for sure.
                Err(error) if error.cause == Cause::UnknownField => {
                    refused.push(format!("template {template:?}: {error}"));
                }
                Err(error) => unclear.push(format!("not known: template {template:?}: {error}\n")),
            }
        }
        let (code, page) = answer(&refused);
        let page = (code, page + &unclear.concat());
        *last = Some((Instant::now(), page.clone()));
        page
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::discovery::ApiResource;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::testing::{Answer, answering};

    struct Templates;

    impl Validate for Templates {
        fn validate(&self) -> Result<(), Vec<String>> {
            Ok(())
        }

        fn samples(&self) -> Vec<TemplateSample> {
            let sample = |template: &str, namespace: Option<&str>| TemplateSample {
                template: template.to_owned(),
                resource: ApiResource::erase::<Pod>(&()),
                namespace: namespace.map(str::to_owned),
                object: json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": template}}),
            };
            vec![sample("good", None), sample("bad", None), sample("elsewhere", Some("other"))]
        }
    }

    fn refusal(code: u16, message: &str) -> Answer {
        Answer::Json(code, json!({"kind": "Status", "status": "Failure", "code": code, "message": message}))
    }

    #[tokio::test(start_paused = true)]
    async fn a_field_that_would_be_dropped_is_told_and_nothing_is_stored() {
        let (client, log) = answering(|sent| match sent.body["metadata"]["name"].as_str() {
            Some("bad") => refusal(400, "strict decoding error: unknown field \"spec.readinessProb\""),
            Some("elsewhere") => refusal(403, "pods is forbidden"),
            _ => Answer::Done,
        });
        let test = Arc::new(SelfTest::new(client, "catena-system", SettingsHandle::fixed(Templates)));
        let (code, page) = test.page().await;
        let lines: Vec<_> = page.lines().collect();
        let [refused, unclear] = lines[..] else { panic!("{page}") };
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            refused.starts_with("template \"bad\"") && refused.contains("spec.readinessProb"),
            "{refused}"
        );
        assert!(unclear.starts_with("not known: template \"elsewhere\""), "{unclear}");
        let sent = log.take();
        let place =
            |namespace| format!("/api/v1/namespaces/{namespace}/pods?&dryRun=All&fieldValidation=Strict");
        let uris: Vec<_> = sent.iter().map(|sent| sent.uri.clone()).collect();
        assert_eq!(uris, [place("catena-system"), place("catena-system"), place("other")]);
        assert_eq!(sent[2].body["metadata"]["namespace"], "other");

        assert_eq!(test.page().await.1, page);
        assert!(log.take().is_empty(), "it was asked again at once");
        tokio::time::advance(REPEAT_INTERVAL).await;
        test.page().await;
        assert_eq!(log.take().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_leaves_templates_unclear_and_the_next_visitor_is_told() {
        let (client, _log) = answering(|_| Answer::Silence);
        let test = Arc::new(SelfTest::new(client, "catena-system", SettingsHandle::fixed(Templates)));
        // That of `--probe`, which asks again.
        let visit = Duration::from_secs(5);
        assert!(timeout(visit, test.page()).await.is_err());
        let (code, page) = timeout(2 * visit, test.page()).await.expect("the first visitor began it");
        assert!(code == StatusCode::OK && page.starts_with("ok\nnot known: "), "{page}");
        assert_eq!(page.matches("did not answer").count(), 3, "{page}");
    }
}
