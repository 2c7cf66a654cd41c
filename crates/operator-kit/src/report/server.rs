use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

use crate::report::{health::Health, metrics::Metrics};

/// Serves `/readyz`, `/healthz` and `/metrics`.
pub(crate) async fn serve(
    listen: SocketAddr,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another address with --listen"))?;
    let (ready, alive) = (health.clone(), health.clone());
    let routes = Router::new()
        .route("/readyz", get(async move || answer(&ready.unready())))
        .route("/healthz", get(async move || answer(alive.dead().as_slice())))
        .route("/metrics", get(async move || exposition(&metrics, &health)));
    axum::serve(listener, routes).await.context("the health and metrics server stopped")
}

fn answer(problems: &[String]) -> (StatusCode, String) {
    if problems.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n") + "\n")
    }
}

fn exposition(metrics: &Metrics, health: &Health) -> Response {
    metrics.observed(&health.observed());
    match metrics.encode() {
        Ok(page) => {
            ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page)
                .into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
