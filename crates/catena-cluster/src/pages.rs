//! Reads lists page by page, so that no response is huge.

use catena_terminal::{Tone, sanitized, tell};
use kube::{
    Client,
    api::ListParams,
    core::{ListMeta, Request},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{ObjectName, lenient};

/// Objects per page.
pub const PAGE_SIZE: u32 = 500;

/// Its objects are decoded one by one: a defect of one does not spoil the list.
#[derive(Deserialize)]
struct Page<'t> {
    #[serde(default)]
    metadata: ListMeta,
    /// Null when there are none.
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

/// A list of which one page is held at a time.
pub struct Pages {
    client: Client,
    url: String,
    is_metadata: bool,
    /// `None` after the last page.
    next: Option<ListParams>,
    /// The number of objects on the pages to come, if the server says so.
    pub remaining: Option<u64>,
    /// The number of objects so far that cannot be read, each of which a warning names.
    pub omitted: usize,
}

impl Pages {
    /// A list of whole objects.
    #[must_use]
    pub fn whole(client: &Client, url: String, params: ListParams) -> Self {
        let limit = params.limit.unwrap_or(PAGE_SIZE);
        Self { is_metadata: false, ..Self::of_metadata(client, url, params.limit(limit)) }
    }

    /// A list of metadata, in one response unless the parameters limit it.
    #[must_use]
    pub fn of_metadata(client: &Client, url: String, params: ListParams) -> Self {
        let (client, next) = (client.clone(), Some(params));
        Self { client, url, is_metadata: true, next, remaining: None, omitted: 0 }
    }

    /// The objects of the first pages, and whether these are all.
    pub async fn first<K: DeserializeOwned>(mut self, pages: usize) -> kube::Result<(Vec<K>, bool)> {
        let mut objects = Vec::new();
        for _ in 0..pages {
            match self.next().await? {
                Some(page) => objects.extend(page),
                None => break,
            }
        }
        Ok((objects, self.next.is_none()))
    }

    /// The next page.
    pub async fn next<K: DeserializeOwned>(&mut self) -> kube::Result<Option<Vec<K>>> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let text = match self.page(&params).await {
            // The snapshot is too old: the server offers to continue behind the last object, with the present ones.
            Err(kube::Error::Api(status)) if status.code == 410 => {
                let token = status.metadata.as_ref().and_then(|metadata| metadata.continue_.clone());
                match token.filter(|token| !token.is_empty()) {
                    Some(token) => self.page(&params.clone().continue_token(&token)).await?,
                    None => return Err(kube::Error::Api(status)),
                }
            }
            page => page?,
        };
        let Page { metadata, items } = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        let more = metadata.continue_.filter(|token| !token.is_empty());
        self.next = more.map(|token| params.continue_token(&token));
        self.remaining = metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
        let mut objects = Vec::new();
        for item in items.into_iter().flatten() {
            match lenient::read(item.get()) {
                Ok(object) => objects.push(object),
                Err(error) => {
                    self.omitted += 1;
                    let omitted = omitted(&self.url, item.get(), &error);
                    tell(&format!("{} {omitted}", Tone::Bad.paint("warning:")));
                }
            }
        }
        Ok(Some(objects))
    }

    async fn page(&self, params: &ListParams) -> kube::Result<String> {
        let list = Request::new(&self.url);
        let request = if self.is_metadata { list.list_metadata(params) } else { list.list(params) };
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }
}

/// The warning about an object that cannot be decoded.
fn omitted(url: &str, text: &str, error: &serde_json::Error) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Named {
        metadata: ObjectName,
    }

    let Named { metadata: ObjectName { namespace, name } } = serde_json::from_str(text).unwrap_or_default();
    let plural = url.rsplit('/').next().unwrap_or_default();
    let namespace = namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace:?}"));
    sanitized(&format!("{plural}/{name}{namespace} cannot be read and is omitted: {error}"))
}

#[cfg(test)]
mod tests {
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;
    use crate::testing::serving;

    #[tokio::test]
    async fn an_unreadable_object_is_named_and_the_others_are_read() {
        let bad = json!({"metadata": {"name": "bad", "namespace": "shop", "labels": 3}});
        let list = json!({"metadata": {}, "items": [bad.clone(), {"metadata": {"name": "good", "namespace": "shop"}}]});
        let (cluster, _) = serving(move |_| Some(list.clone()));
        let kind = cluster.kinds.find("pods").unwrap();
        let listed = cluster.list(kind, Some("shop"), ListParams::default()).await.unwrap();
        let names: Vec<_> = listed.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
        assert_eq!(names, ["good"]);
        let error = lenient::read::<DynamicObject>(&bad.to_string()).unwrap_err();
        let told = omitted(&kind.url(Some("shop")), &bad.to_string(), &error);
        assert!(
            told.starts_with("pods/bad in namespace \"shop\" cannot be read and is omitted: invalid type"),
            "{told}"
        );
    }
}
