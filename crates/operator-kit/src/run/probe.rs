use std::time::Duration;

use anyhow::{bail, ensure};
use axum::http::{
    Request, StatusCode, Uri,
    uri::{PathAndQuery, Scheme},
};
use kube::{Client, Config, client::Body};
use tokio::time::{Instant, sleep, timeout};

/// Time limit of all tries: a pod may be starting, and a name may be new.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of all tries for new settings, which a kubelet delivers in about a minute.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(120);
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests a page of a running controller, such as /readyz, until the answer is a success, and returns it.
///
/// # Errors
/// When there was no success in time: the last answer, or the reason why there was none. At once when the controller
/// answers that it refuses its settings.
pub(crate) async fn probe(url: &Uri) -> anyhow::Result<String> {
    ensure!(
        url.scheme() == Some(&Scheme::HTTP),
        "--probe {url}: must be an http URL of a controller, such as http://controller:8080/readyz"
    );
    let limit = if url.path() == "/settings" { SETTINGS_TIMEOUT } else { PROBE_TIMEOUT };
    let deadline = Instant::now() + limit;
    loop {
        let answer = timeout(REQUEST_TIMEOUT, ask(url)).await;
        let answer = answer.unwrap_or_else(|_| bail!("no answer within {} s", REQUEST_TIMEOUT.as_secs()));
        let (status, text) = match answer {
            Ok((status, text)) if status.is_success() => return Ok(text),
            Ok((status, text)) => (Some(status), format!("it answers {status}: {text}")),
            Err(error) => (None, format!("{error:#}")),
        };
        ensure!(status != Some(StatusCode::UNPROCESSABLE_ENTITY), "{url}: {text}");
        if Instant::now() + PROBE_INTERVAL > deadline {
            bail!("{url} reported no success within {} s: {text}", limit.as_secs());
        }
        sleep(PROBE_INTERVAL).await;
    }
}

/// One try.
async fn ask(url: &Uri) -> anyhow::Result<(StatusCode, String)> {
    let mut origin = url.clone().into_parts();
    let page = origin.path_and_query.replace(PathAndQuery::from_static("/"));
    let mut config = Config::new(Uri::from_parts(origin)?);
    config.default_retry = false;
    // TLS is not used, and an image with nothing but the controller has no root certificates to load.
    config.root_cert = Some(Vec::new());
    let request = Request::get(page.as_ref().map_or("/", PathAndQuery::as_str)).body(Body::empty())?;
    let response = Client::try_from(config)?.send(request).await?;
    let status = response.status();
    let text = String::from_utf8_lossy(&response.into_body().collect_bytes().await?).trim().to_owned();
    Ok((status, text))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    };

    use axum::{Router, routing::get};
    use tokio::net::TcpListener;

    use super::*;

    /// Serves a page that fails this many times.
    async fn serve(unwell: i32) -> Uri {
        let left = Arc::new(AtomicI32::new(unwell));
        let answer = async move || {
            if left.fetch_sub(1, Ordering::Relaxed) > 0 {
                (StatusCode::SERVICE_UNAVAILABLE, "Pod: not listed yet\n")
            } else {
                (StatusCode::OK, "ok\n")
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/readyz", listener.local_addr().unwrap()).parse().unwrap();
        let routes = Router::new().route("/readyz", get(answer));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        url
    }

    #[tokio::test]
    async fn a_controller_that_becomes_ready_is_waited_for() {
        assert_eq!(probe(&serve(1).await).await.unwrap(), "ok");
    }

    #[tokio::test]
    async fn what_is_not_well_is_told_in_its_own_words() {
        let (status, text) = ask(&serve(1).await).await.unwrap();
        assert_eq!((status.as_u16(), text.as_str()), (503, "Pod: not listed yet"));
    }

    #[tokio::test]
    async fn refused_settings_are_told_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/settings?version=a", listener.local_addr().unwrap()).parse().unwrap();
        let answer = async || (StatusCode::UNPROCESSABLE_ENTITY, "kinds.x: lost\n");
        let routes = Router::new().route("/settings", get(answer));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let answer = timeout(REQUEST_TIMEOUT, probe(&url)).await.unwrap();
        let error = format!("{:#}", answer.unwrap_err());
        assert!(error.contains("kinds.x: lost"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/readyz", listener.local_addr().unwrap()).parse().unwrap();
        let error = format!("{:#}", probe(&url).await.unwrap_err());
        assert!(error.contains("reported no success within 30 s: no answer within 5 s"), "{error}");
    }

    #[tokio::test]
    async fn nobody_there_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/readyz", listener.local_addr().unwrap()).parse().unwrap();
        drop(listener);
        let error = format!("{:#}", ask(&url).await.unwrap_err());
        assert!(error.to_lowercase().contains("refused"), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_url_of_a_controller_is_refused_at_once() {
        for text in ["controller:8080", "/readyz", "ftp://controller/readyz"] {
            let error = probe(&text.parse().unwrap()).await.unwrap_err().to_string();
            assert!(error.contains("such as http://"), "{text}: {error}");
        }
    }
}
