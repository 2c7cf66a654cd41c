use std::{net::SocketAddr, time::Duration};

use anyhow::{bail, ensure};
use axum::http::{
    Request, StatusCode, Uri,
    uri::{PathAndQuery, Scheme},
};
use kube::{Client, Config, client::Body};
use tokio::{
    net::lookup_host,
    time::{Instant, sleep, timeout},
};

/// Time limit of all tries: a pod may be starting, and a name may be new.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of all tries for new settings, which a kubelet delivers in about a minute.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(120);
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests a page of all pods of a running controller, such as /readyz, until each answer is a success, and returns the last one.
///
/// # Errors
/// When there was no success in time: an answer, or the reason why there was none. At once when the controller
/// answers that it refuses its settings.
pub(crate) async fn probe(url: &Uri) -> anyhow::Result<String> {
    ensure!(
        url.scheme() == Some(&Scheme::HTTP),
        "--probe {url}: must be an http URL of a controller, such as http://controller:8080/readyz"
    );
    let limit = if url.path() == "/settings" { SETTINGS_TIMEOUT } else { PROBE_TIMEOUT };
    let deadline = Instant::now() + limit;
    let place = format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(80));
    loop {
        let (status, text) = match timeout(REQUEST_TIMEOUT, lookup_host(&place)).await {
            Ok(Ok(pods)) => match ask_each(url, &pods.collect::<Vec<_>>()).await {
                Ok(text) => return Ok(text),
                Err(failure) => failure,
            },
            Ok(Err(error)) => (None, error.to_string()),
            Err(error) => (None, format!("{place} is not resolved: {error}")),
        };
        ensure!(status != Some(StatusCode::UNPROCESSABLE_ENTITY), "{url}: {text}");
        if Instant::now() + PROBE_INTERVAL > deadline {
            bail!("{url} reported no success within {} s: {text}", limit.as_secs());
        }
        sleep(PROBE_INTERVAL).await;
    }
}

/// One try: the page, or the first answer that is no success, with its status if it has one. A Service without a cluster IP has
/// an address for each pod.
async fn ask_each(url: &Uri, pods: &[SocketAddr]) -> Result<String, (Option<StatusCode>, String)> {
    let page = url.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut result = Err((None, "its name has no address".to_owned()));
    for pod in pods {
        let who = if pods.len() > 1 { format!("{pod}: ") } else { String::new() };
        let answer = timeout(REQUEST_TIMEOUT, async { ask(&format!("http://{pod}{page}").parse()?).await });
        let late = |_| bail!("no answer within {} s", REQUEST_TIMEOUT.as_secs());
        result = match answer.await.unwrap_or_else(late) {
            Ok((status, text)) if status.is_success() => Ok(text),
            Ok((status, text)) => return Err((Some(status), format!("{who}it answers {status}: {text}"))),
            Err(error) => return Err((None, format!("{who}{error:#}"))),
        };
    }
    result
}

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
    async fn of_several_pods_each_must_be_well() {
        let urls = [serve(0).await, serve(1).await];
        let pods = urls.each_ref().map(|url| url.authority().unwrap().as_str().parse().unwrap());
        let (status, text) = ask_each(&urls[0], &pods).await.unwrap_err();
        assert_eq!(status.unwrap().as_u16(), 503);
        assert_eq!(text, format!("{}: it answers 503 Service Unavailable: Pod: not listed yet", pods[1]));
        assert_eq!(ask_each(&urls[0], &pods).await.unwrap(), "ok");
        // A name without an address is no success.
        ask_each(&urls[0], &[]).await.unwrap_err();
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
