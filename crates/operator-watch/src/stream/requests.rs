//! The requests of a watch, each with a time limit, and what their answers mean.

use std::{borrow::Cow, io, marker::PhantomData, pin::pin, sync::Arc, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt, Stream, StreamExt, future::ready};
use http::{HeaderValue, header::ACCEPT_ENCODING};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchParams},
    core::{ListMeta, Request, Status},
    discovery::ApiResource,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;

use super::items::Items;
use crate::{ServedKinds, Trimmed, TrimmedObject, lenient::Lenient, live::within};

/// Time limit of a page: the API server gives up a list after 60 s.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for starting a watch: the API server answers before the first change.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds after which the server ends a watch, so that a dead connection is noticed soon.
const WATCH_SECONDS: u32 = 60;

/// The objects to watch, and the name of their kind in messages.
pub struct Watch<K> {
    pub(super) kind: String,
    client: Client,
    pub(super) path: String,
    labels: Option<String>,
    is_metadata_only: bool,
    pub(super) versions: Option<Versions>,
    objects: PhantomData<fn() -> K>,
}

/// The versions of a kind that is watched in another one while the wanted one is not served.
pub(super) struct Versions {
    pub served: ServedKinds,
    pub wanted: Arc<ApiResource>,
    pub substitute: Option<Arc<ApiResource>>,
}

impl<K: Resource> Watch<K> {
    /// Watches everything that `api` covers. `kind` is its name in messages.
    #[must_use]
    pub fn new(api: Api<K>, kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            path: api.resource_url().to_owned(),
            client: api.into_client(),
            labels: None,
            is_metadata_only: false,
            versions: None,
            objects: PhantomData,
        }
    }

    /// Narrows the watch to objects with a label; others never reach this process.
    #[must_use]
    pub fn labelled(mut self, selector: &str) -> Self {
        self.labels = Some(selector.to_owned());
        self
    }
}

impl Watch<TrimmedObject> {
    /// Watches only the metadata; the other fields are not there.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// Watches all objects of a kind in another version than the `wanted` one while that is not served.
    #[must_use]
    pub fn in_any_version(mut self, served: &ServedKinds, wanted: impl Into<Arc<ApiResource>>) -> Self {
        self.versions = Some(Versions { served: served.clone(), wanted: wanted.into(), substitute: None });
        self
    }
}

impl<K: DeserializeOwned> Watch<K> {
    /// Requests a page of the list with at most so many objects, the first one without a token, and passes each object to `take`
    /// as soon as it has arrived.
    pub(super) async fn page(
        &self,
        limit: u32,
        token: Option<String>,
        take: impl FnMut(Lenient<K>),
    ) -> kube::Result<ListMeta> {
        let params = ListParams {
            label_selector: self.labels.clone(),
            limit: Some(limit),
            continue_token: token,
            ..ListParams::default()
        };
        let all = Request::new(&*self.path);
        let request = if self.is_metadata_only { all.list_metadata(&params) } else { all.list(&params) };
        let request = request.map_err(kube::Error::BuildRequest)?;
        within(PAGE_TIMEOUT, page(&self.client, request, take)).await
    }

    /// The changes since a version; `Ok` as soon as the server has started the watch.
    pub(super) async fn changes(
        &self,
        version: &str,
    ) -> kube::Result<impl Stream<Item = kube::Result<Change<K>>> + use<K>> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let watch = Request::new(&*self.path);
        let request = if self.is_metadata_only {
            watch.watch_metadata(&params, version)
        } else {
            watch.watch(&params, version)
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Each event would be a separate gzip member, of which the client decodes only the first.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let lines = within(START_TIMEOUT, self.client.request_stream(request)).await?.lines();
        // A broken connection ends the watch, as the server itself does; a line that it cuts off comes again.
        let is_told = |line: &io::Result<String>| match line {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::InvalidData,
        };
        let told = lines.take_while(move |line| ready(is_told(line)));
        Ok(told.map(|line| Change::read(&line.map_err(kube::Error::ReadEvents)?)))
    }
}

/// A list whose items have been passed on.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default, rename = "items")]
    _items: Option<Vec<IgnoredAny>>,
}

/// Requests a page, passes each object to `take` as soon as it has arrived, and returns the metadata of the list.
pub(crate) async fn page<K: DeserializeOwned>(
    client: &Client,
    request: http::Request<Vec<u8>>,
    take: impl FnMut(Lenient<K>),
) -> kube::Result<ListMeta> {
    read_objects(client.request_stream(request).await?, take).await
}

/// Reads a page, passes each object to `take`, and returns the metadata of the list.
pub(crate) async fn read_objects<K: DeserializeOwned>(
    text: impl AsyncBufRead,
    mut take: impl FnMut(Lenient<K>),
) -> kube::Result<ListMeta> {
    let (mut text, mut items) = (pin!(text), Items::default());
    loop {
        let piece = text.fill_buf().await.map_err(kube::Error::ReadEvents)?;
        if piece.is_empty() {
            break;
        }
        let length = piece.len();
        items.read(piece, |item| take(Lenient::of(item)));
        text.consume_unpin(length);
    }
    let List { metadata, .. } = serde_json::from_slice(items.list()).map_err(kube::Error::SerdeError)?;
    Ok(metadata)
}

/// The content of a line of a watch.
pub(crate) enum Change<K> {
    /// An object is new or changed.
    Applied(Lenient<K>),
    /// An object is gone.
    Deleted(Lenient<K>),
    /// The watch is as far as this version.
    Reached(String),
}

/// A line of a watch. kube's `WatchEvent` decodes the object with the line, and fails with it.
#[derive(Deserialize)]
struct Line<'t> {
    r#type: Cow<'t, str>,
    #[serde(borrow)]
    object: &'t RawValue,
}

impl<K: DeserializeOwned> Change<K> {
    pub fn read(text: &str) -> kube::Result<Self> {
        Self::read_at_once(text).map_or_else(|| Self::read_in_steps(text), Ok)
    }

    /// The change of a line as the API server writes it. Nearly all are, and most of the work of a busy watch is to decode
    /// them.
    fn read_at_once(text: &str) -> Option<Self> {
        let (r#type, rest) = text.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":"#)?;
        let change = match r#type {
            "ADDED" | "MODIFIED" => Self::Applied,
            "DELETED" => Self::Deleted,
            _ => return None,
        };
        // Whatever else may follow in the line is no part of an object.
        let object = Lenient::read(rest.trim_end().strip_suffix('}')?);
        object.0.is_ok().then(|| change(object))
    }

    fn read_in_steps(text: &str) -> kube::Result<Self> {
        let Line { r#type, object } = serde_json::from_str(text).map_err(kube::Error::SerdeError)?;
        Ok(match &*r#type {
            "ADDED" | "MODIFIED" => Self::Applied(Lenient::read(object.get())),
            "DELETED" => Self::Deleted(Lenient::read(object.get())),
            "BOOKMARK" => {
                let bookmark: Trimmed =
                    serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                Self::Reached(bookmark.metadata.resource_version.unwrap_or_default())
            }
            _ => {
                let status: Status = serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                return Err(kube::Error::Api(Box::new(status)));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        pin::Pin,
        task::{Context, Poll},
    };

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    /// Objects of a page.
    const OBJECTS: usize = 200;
    /// Approximate size of each, in bytes.
    const LARGE: usize = 43_000;
    /// Bytes that arrive at once.
    const PIECE: usize = 16 * 1024;

    /// A connection that counts the bytes that were read from it.
    struct Counting<'t> {
        text: &'t [u8],
        read: &'t Cell<usize>,
    }

    impl futures::AsyncRead for Counting<'_> {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            unreachable!("its buffer is read")
        }
    }

    impl AsyncBufRead for Counting<'_> {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            let text = self.get_mut().text;
            Poll::Ready(Ok(&text[..text.len().min(PIECE)]))
        }

        fn consume(mut self: Pin<&mut Self>, length: usize) {
            self.text = &self.text[length..];
            self.read.set(self.read.get() + length);
        }
    }

    fn page(objects: usize) -> String {
        let object =
            |number| json!({"metadata": {"name": format!("map-{number}")}, "data": {"k": "x".repeat(LARGE)}});
        let items: Vec<_> = (0..objects).map(object).collect();
        json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": items}).to_string()
    }

    #[tokio::test]
    async fn each_object_is_passed_on_before_the_next_one_has_arrived() {
        let (text, read, mut taken, mut ahead) = (page(OBJECTS), Cell::new(0), 0, 0);
        let arriving = Counting { text: text.as_bytes(), read: &read };
        let list = read_objects(arriving, |object: Lenient<ConfigMap>| {
            assert!(object.0.is_ok());
            ahead = ahead.max(read.get().saturating_sub(taken * LARGE));
            taken += 1;
        });
        let list = list.await.unwrap();
        assert_eq!((list.continue_.as_deref(), list.resource_version.as_deref()), (Some("more"), Some("7")));
        assert_eq!((taken, read.get()), (OBJECTS, text.len()));
        assert!(ahead < 2 * LARGE, "{ahead} bytes were read before an object was passed on");
    }

    #[tokio::test]
    async fn a_page_that_ends_too_early_is_none() {
        let text = page(2);
        for end in [text.len() - 1, text.len() / 2, 5, 0] {
            let list = read_objects(&text.as_bytes()[..end], |_: Lenient<ConfigMap>| {}).await;
            assert!(matches!(list, Err(kube::Error::SerdeError(_))), "{list:?}");
        }
    }

    /// What is read of a line: its type, and the name of the object if it can be read.
    fn read(line: &str) -> (&'static str, Option<String>) {
        let named = |object: Lenient<ConfigMap>| object.0.ok().and_then(|map| map.metadata.name);
        match Change::read(line) {
            Ok(Change::Applied(object)) => ("applied", named(object)),
            Ok(Change::Deleted(object)) => ("deleted", named(object)),
            Ok(Change::Reached(version)) => ("reached", Some(version)),
            Err(_) => ("interrupted", None),
        }
    }

    #[test]
    fn a_line_means_the_same_in_whatever_form_it_comes() {
        let object = r#"{"metadata":{"name":"a","annotations":{"x":"\",\"object\":}"}}}"#;
        let applied = ("applied", Some("a".to_owned()));
        for line in [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"),
            format!(r#"{{ "type": "ADDED", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{object},"other":{{}}}}"#),
        ] {
            assert_eq!(read(&line), applied, "{line}");
        }
        assert_eq!(read(&format!(r#"{{"type":"DELETED","object":{object}}}"#)).0, "deleted");
        let reached = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#;
        assert_eq!(read(reached), ("reached", Some("7".to_owned())));
    }

    #[test]
    fn a_line_whose_object_cannot_be_read_is_told_from_one_that_is_none() {
        assert_eq!(read(r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#), ("applied", None));
        for line in ["", "{}", r#"{"type":"ADDED","object":{"#, r#"{"type":"ERROR","object":{"code":410}}"#] {
            assert_eq!(read(line).0, "interrupted", "{line}");
        }
    }
}
