//! The requests of a watch, each with a time limit, and what their answers mean.

use std::{marker::PhantomData, pin::pin, sync::Arc, time::Duration};

use futures::{AsyncBufReadExt, AsyncReadExt, Stream, StreamExt};
use http::{self, HeaderValue, header::ACCEPT_ENCODING};
use kube::{
    Client, Resource,
    api::{DynamicObject, ListParams, WatchParams},
    core::{ListMeta, Request, Status},
    discovery::ApiResource,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Discovery, Live, PrunedObject, decode::Received};

/// Time limit of a page: the API server gives up a list after 60 s.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest text of a page of several objects, in bytes, which is in memory as a whole. One object can be longer: the API
/// server writes some characters as six bytes.
const MAX_PAGE: u64 = 3 * 512 * 1024;
/// Time limit for starting a watch: the API server answers before the first change.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds after which the server ends a watch, so that a dead connection is noticed soon.
pub(super) const WATCH_SECONDS: u32 = 60;

/// The objects to watch, and the name of their kind in messages.
pub struct Watch<K> {
    pub(super) kind: String,
    pub(super) resource: Arc<ApiResource>,
    client: Client,
    pub(super) path: String,
    pub(crate) labels: Option<String>,
    pub(crate) is_metadata_only: bool,
    pub(super) versions: Option<Versions>,
    /// The reason with which objects that cannot be read are reported; `None` for the usual one.
    pub(super) mistake_reason: Option<&'static str>,
    objects: PhantomData<fn() -> K>,
}

/// The versions of a kind that is watched in another one while the wanted one is not served.
pub(super) struct Versions {
    pub served: Discovery,
    pub wanted: Arc<ApiResource>,
    pub substitute: Option<Arc<ApiResource>>,
}

impl<K: Resource> Watch<K> {
    /// Watches all objects of a kind.
    #[must_use]
    pub fn all(client: &Client, kind: &K::DynamicType) -> Self {
        Self {
            kind: K::kind(kind).into_owned(),
            resource: Arc::new(ApiResource::erase::<K>(kind)),
            path: K::url_path(kind, None),
            client: client.clone(),
            labels: None,
            is_metadata_only: false,
            versions: None,
            mistake_reason: None,
            objects: PhantomData,
        }
    }

    /// Whether the kind may have a definition that can change, and with it what is shown of every object. Kubernetes' first
    /// groups have none, and metadata do not depend on it.
    pub(super) fn is_definable(&self) -> bool {
        self.resource.group.contains('.') && !self.is_metadata_only
    }

    /// Names what is watched in messages, where that is more than a kind.
    #[must_use]
    pub fn called(self, name: impl Into<String>) -> Self {
        Self { kind: name.into(), ..self }
    }

    /// Narrows the watch to a namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { path: DynamicObject::url_path(&self.resource, Some(namespace)), ..self }
    }

    /// Narrows the watch to objects with a label; others never reach this process.
    #[must_use]
    pub fn labelled(self, selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..self }
    }

    /// Has each object that cannot be read reported with this reason, and with nothing but its mistake.
    #[must_use]
    pub fn reported_as(self, reason: &'static str) -> Self {
        Self { mistake_reason: Some(reason), ..self }
    }
}

impl Watch<PrunedObject> {
    /// Watches the metadata of all objects of the kind `K`.
    #[must_use]
    pub fn metadata_of<K: Resource<DynamicType = ()>>(client: &Client) -> Self {
        Self::all(client, &ApiResource::erase::<K>(&())).metadata_only()
    }

    /// Watches only the metadata; the other fields are not there.
    #[must_use]
    pub fn metadata_only(self) -> Self {
        Self { is_metadata_only: true, ..self }
    }

    /// Watches all objects of the kind in another version while the wanted one is not served.
    #[must_use]
    pub fn in_any_version(self, served: &Discovery) -> Self {
        let wanted = self.resource.clone();
        Self { versions: Some(Versions { served: served.clone(), wanted, substitute: None }), ..self }
    }
}

impl<K: DeserializeOwned> Watch<K> {
    /// One page of the list, and the token of the next one. An object that cannot be read is left out.
    ///
    /// # Errors
    /// The request failed, or was not answered in time.
    pub async fn read(
        &self,
        mut limit: u32,
        token: Option<String>,
    ) -> kube::Result<(Vec<K>, Option<String>)> {
        let mut objects = Vec::new();
        let list = self.page(&mut limit, token, |object| objects.extend(object.0)).await?;
        Ok((objects, list.continue_.filter(|token| !token.is_empty())))
    }

    /// Requests a page of the list, the first one without a token, and passes each object to `take` before the next one is
    /// decoded. `limit` is the maximum number of objects: while the text of the page is too long, it is reduced; after a
    /// short one, it is raised.
    pub(super) async fn page(
        &self,
        limit: &mut u32,
        token: Option<String>,
        take: impl FnMut(Received<K>),
    ) -> kube::Result<ListMeta> {
        let mut params = ListParams {
            label_selector: self.labels.clone(),
            continue_token: token,
            ..ListParams::default()
        };
        let list = if self.is_metadata_only { Request::list_metadata } else { Request::list };
        let page = async {
            loop {
                params.limit = Some(*limit);
                let request = list(&Request::new(&*self.path), &params).map_err(kube::Error::BuildRequest)?;
                let longest = if *limit == 1 { u64::MAX } else { MAX_PAGE };
                let (answer, mut text) =
                    (self.client.request_stream(request).await?.take(longest), Vec::new());
                pin!(answer).read_to_end(&mut text).await.map_err(kube::Error::ReadEvents)?;
                let length = text.len() as u64;
                if length < longest {
                    if length < MAX_PAGE / 4 {
                        *limit = limit.saturating_mul(2);
                    }
                    return read_page(&text, take);
                }
                *limit = (*limit / 2).max(1);
            }
        };
        Live::within(PAGE_TIMEOUT, page).await
    }

    /// The changes since a version; `Ok` as soon as the server has started the watch.
    pub(super) async fn changes(
        &self,
        version: &str,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchLine<Received<K>>>> + use<K>> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            timeout: Some(WATCH_SECONDS),
            ..WatchParams::default()
        };
        let watch = if self.is_metadata_only { Request::watch_metadata } else { Request::watch };
        let request = watch(&Request::new(&*self.path), &params, version);
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Each event would be a separate gzip member, of which the client decodes only the first.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let lines = Live::within(START_TIMEOUT, self.client.request_stream(request)).await?.lines();
        Ok(lines.map(|line| WatchLine::read(&line.map_err(kube::Error::ReadEvents)?)))
    }
}

/// Reads a page, passes each object to `take` before the next one is decoded, and returns the metadata of the list.
pub(crate) fn read_page<K: DeserializeOwned>(
    text: &[u8],
    take: impl FnMut(Received<K>),
) -> kube::Result<ListMeta> {
    #[derive(Deserialize)]
    struct Page<'t> {
        #[serde(default)]
        metadata: ListMeta,
        #[serde(borrow)]
        items: Option<Vec<&'t RawValue>>,
    }

    let Page { metadata, items } = serde_json::from_slice(text).map_err(kube::Error::SerdeError)?;
    items.into_iter().flatten().map(|item| Received::read(item.get())).for_each(take);
    Ok(metadata)
}

/// A line of a watch. kube's `WatchEvent` decodes the object with the line, and fails with it.
#[derive(Deserialize)]
pub(crate) struct WatchLine<O> {
    pub r#type: WatchLineType,
    /// The object; of a bookmark, only its version.
    pub object: O,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum WatchLineType {
    Added,
    Modified,
    Deleted,
    /// The watch is as far as this version.
    Bookmark,
    /// The object is a [`Status`].
    Error,
}

impl<K: DeserializeOwned> WatchLine<Received<K>> {
    /// Reads a line. Nearly every object can be read, and most of the work of a busy watch is to decode them, so the line
    /// is decoded in one go at first.
    pub fn read(text: &str) -> kube::Result<Self> {
        let change = if let Ok(WatchLine { r#type, object }) = decoded::<WatchLine<K>>(text) {
            Self { r#type, object: Received(Ok(object)) }
        } else {
            let WatchLine { r#type, object }: WatchLine<&RawValue> = decoded(text)?;
            Self { r#type, object: Received::read(object.get()) }
        };
        if change.r#type == WatchLineType::Error {
            let WatchLine { object, .. }: WatchLine<Status> = decoded(text)?;
            return Err(kube::Error::Api(Box::new(object)));
        }
        Ok(change)
    }
}

fn decoded<'t, T: Deserialize<'t>>(text: &'t str) -> kube::Result<T> {
    serde_json::from_str(text).map_err(kube::Error::SerdeError)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_page_without_an_answer_ends_in_time_and_says_so() {
        let (client, _log) = answering(|_| Answer::Silence);
        let began = Instant::now();
        let error = Watch::<ConfigMap>::all(&client, &()).read(1, None).await.unwrap_err().to_string();
        assert!(error.contains("did not answer within 60 s"), "{error}");
        assert_eq!(began.elapsed(), PAGE_TIMEOUT);
    }

    const PAGE: &str = r#"{"metadata": {"resourceVersion": "7", "continue": "more"}, "other": {"items": [1]},
        "items": [{"metadata": {"name": "a"}}, {"metadata": 7}, "x", {"metadata": {"name": "b"}}]}"#;

    #[test]
    fn each_object_of_a_page_is_read_for_itself_and_passed_on_before_the_next_one() {
        thread_local!(static DECODED: Cell<usize> = const { Cell::new(0) });

        struct Counted;

        impl<'de> Deserialize<'de> for Counted {
            fn deserialize<D: serde::Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
                DECODED.set(DECODED.get() + 1);
                ConfigMap::deserialize(decoder).map(|_| Self)
            }
        }

        let mut readable = Vec::new();
        let list = read_page(PAGE.as_bytes(), |object: Received<Counted>| {
            readable.push(object.0.is_ok());
            assert_eq!(DECODED.get(), readable.len(), "one at a time");
        });
        let list = list.unwrap();
        assert_eq!((list.continue_.as_deref(), list.resource_version.as_deref()), (Some("more"), Some("7")));
        assert_eq!(readable, [true, false, false, true]);
    }

    #[test]
    fn a_list_without_items_is_a_list() {
        for text in [r#"{"items": null}"#, r#"{"items": []}"#, r#"{"items": [ ]}"#, "{}"] {
            let list = read_page(text.as_bytes(), |_: Received<ConfigMap>| panic!("{text} has an object"));
            assert!(list.is_ok(), "{text}");
        }
    }

    #[test]
    fn a_page_that_ends_too_early_is_none() {
        for end in [PAGE.len() - 1, PAGE.len() / 2, 5, 0] {
            let list = read_page(&PAGE.as_bytes()[..end], |_: Received<ConfigMap>| panic!("it is passed on"));
            assert!(matches!(list, Err(kube::Error::SerdeError(_))), "{list:?}");
        }
    }

    /// What is read of a line: its type, and the name of the object or its version if they can be read.
    fn read(line: &str) -> (Option<WatchLineType>, Option<String>) {
        let Ok(WatchLine { r#type, object }) = WatchLine::<Received<ConfigMap>>::read(line) else {
            return (None, None);
        };
        let version = object.resource_version().map(str::to_owned);
        (Some(r#type), object.0.ok().and_then(|map| map.metadata.name).or(version))
    }

    #[test]
    fn a_line_means_the_same_in_whatever_form_it_comes() {
        let object = r#"{"metadata":{"name":"a","annotations":{"x":"\",\"object\":}"}}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{object}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"),
            format!(r#"{{ "type": "ADDED", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{object},"other":{{}}}}"#),
        ] {
            assert_eq!(read(&line), (Some(WatchLineType::Added), Some("a".to_owned())), "{line}");
        }
        for (text, r#type) in [("MODIFIED", WatchLineType::Modified), ("DELETED", WatchLineType::Deleted)] {
            assert_eq!(read(&format!(r#"{{"type":"{text}","object":{object}}}"#)).0, Some(r#type));
        }
        for object in
            [r#"{"metadata":{"resourceVersion":"7"}}"#, r#"{"metadata":{"resourceVersion":"7"},"data":7}"#]
        {
            let bookmark = format!(r#"{{"type":"BOOKMARK","object":{object}}}"#);
            assert_eq!(read(&bookmark), (Some(WatchLineType::Bookmark), Some("7".to_owned())));
        }
    }

    #[test]
    fn a_line_whose_object_cannot_be_read_is_told_from_one_that_is_none() {
        let unreadable = r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#;
        assert_eq!(read(unreadable), (Some(WatchLineType::Added), None));
        for line in ["", "{}", r#"{"type":"ADDED","object":{"#, r#"{"type":"ERROR","object":{"code":410}}"#] {
            assert_eq!(read(line).0, None, "{line}");
        }
    }
}
