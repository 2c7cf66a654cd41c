//! The requests of a watch, each with a time limit.

use std::{io, marker::PhantomData, time::Duration};

use axum::http::{HeaderValue, header::ACCEPT_ENCODING};
use futures::{AsyncBufReadExt, Stream, StreamExt, future::ready};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchParams},
    core::{ListMeta, Request},
};
use serde::de::DeserializeOwned;

use super::{change::Change, page::page};
use crate::watch::{lenient::Lenient, live::within};

/// Time limit of a page: the API server gives up a list after 60 s.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for starting a watch: the API server answers before the first change.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds after which the server ends a watch, so that a dead connection is noticed soon.
const WATCH_SECONDS: u32 = 60;

/// Where objects come from.
pub(super) struct Source<K> {
    client: Client,
    path: String,
    is_metadata_only: bool,
    pub labels: Option<String>,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> Source<K> {
    pub fn of(api: Api<K>) -> Self {
        Self {
            path: api.resource_url().to_owned(),
            client: api.into_client(),
            is_metadata_only: false,
            labels: None,
            objects: PhantomData,
        }
    }

    /// Asks for nothing but the metadata.
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }
}

impl<K: Clone + DeserializeOwned + Send + 'static> Source<K> {
    /// Requests a page of the list with at most so many objects, the first one without a token, and passes each object to `take`
    /// as soon as it has arrived.
    pub async fn page(
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
    pub async fn changes(
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
