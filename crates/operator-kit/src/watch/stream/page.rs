//! A page of a list, decoded object by object while it arrives.

use std::pin::pin;

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::{Client, core::ListMeta};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::items::Items;
use crate::watch::lenient::Lenient;

/// A list whose items have been passed on.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default, rename = "items")]
    _items: Option<Vec<IgnoredAny>>,
}

/// Requests a page, passes each object to `take` as soon as it has arrived, and returns the metadata of the list.
pub(in crate::watch) async fn page<K: DeserializeOwned>(
    client: &Client,
    request: axum::http::Request<Vec<u8>>,
    take: impl FnMut(Lenient<K>),
) -> kube::Result<ListMeta> {
    read_objects(client.request_stream(request).await?, take).await
}

async fn read_objects<K: DeserializeOwned>(
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
    metadata(&items).map_err(kube::Error::SerdeError)
}

/// The objects of a page that a test makes up.
#[cfg(feature = "testing")]
pub(crate) fn read_page<K: DeserializeOwned>(text: &str) -> serde_json::Result<Vec<Lenient<K>>> {
    let (mut items, mut objects) = (Items::default(), Vec::new());
    items.read(text.as_bytes(), |item| objects.push(Lenient::of(item)));
    metadata(&items).map(|_| objects)
}

fn metadata(items: &Items) -> serde_json::Result<ListMeta> {
    serde_json::from_slice(items.list()).map(|List { metadata, .. }| metadata)
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
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<std::io::Result<usize>> {
            unreachable!("its buffer is read")
        }
    }

    impl AsyncBufRead for Counting<'_> {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<&[u8]>> {
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
}
