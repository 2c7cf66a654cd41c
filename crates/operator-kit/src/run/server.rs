use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use operator_watch::Health;
use tokio::net::TcpListener;

use super::{
    selftest::{SelfTest, Tried},
    settings::Validate,
};
use crate::report::{metrics::Metrics, settings_status::SettingsStatus};

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

async fn tested_answer<S: Validate>(health: &Health, test: &SelfTest<S>) -> (StatusCode, String) {
    let unready = health.unready();
    if !unready.is_empty() {
        return answer(&unready);
    }
    let Tried { refused, unclear } = test.tried().await;
    let (code, page) = answer(&refused);
    (code, unclear.iter().fold(page, |page, unclear| format!("{page}not known: {unclear}\n")))
}

fn exposition(metrics: &Metrics, health: &Health) -> Response {
    metrics.observed(&health.observed());
    metrics.unserved.set(health.unserved());
    match metrics.encode() {
        Ok(page) => {
            ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page)
                .into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
