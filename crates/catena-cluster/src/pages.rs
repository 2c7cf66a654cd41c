//! Reads lists page by page, so that no response is huge.

use kube::{
    Client,
    api::ListParams,
    core::{ListMeta, Request},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    ObjectName, Paint, Tone,
    lenient::{Listed, Unreadable},
    sanitized,
};

/// Objects per page.
pub const PAGE_SIZE: u32 = 500;

#[derive(Deserialize)]
#[serde(bound = "K: DeserializeOwned")]
struct Page<K> {
    #[serde(default)]
    metadata: ListMeta,
    /// Null when there are none.
    items: Option<Vec<Listed<K>>>,
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
        Self { client: client.clone(), url, is_metadata: true, next: Some(params), remaining: None }
    }

    /// The objects of the first pages, and whether these are all.
    pub async fn first<K: DeserializeOwned + 'static>(
        mut self,
        pages: usize,
    ) -> kube::Result<(Vec<K>, bool)> {
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
    pub async fn next<K: DeserializeOwned + 'static>(&mut self) -> kube::Result<Option<Vec<K>>> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let page: Page<K> = match self.page(&params).await {
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
        let more = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = more.map(|token| params.continue_token(&token));
        self.remaining = page.metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
        let mut objects = Vec::new();
        for Listed(object) in page.items.into_iter().flatten() {
            match object {
                Ok(object) => objects.push(object),
                Err(unreadable) => warn(&self.url, &unreadable),
            }
        }
        Ok(Some(objects))
    }

    async fn page<K: DeserializeOwned + 'static>(&self, params: &ListParams) -> kube::Result<Page<K>> {
        let list = Request::new(&self.url);
        let request = if self.is_metadata { list.list_metadata(params) } else { list.list(params) };
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }
}

/// Names an omitted object on standard error.
fn warn(url: &str, Unreadable { object: ObjectName { namespace, name }, error }: &Unreadable) {
    let plural = url.rsplit('/').next().unwrap_or_default();
    let namespace =
        namespace.as_ref().map_or_else(String::new, |namespace| format!(" in namespace {namespace:?}"));
    let said = sanitized(&format!("{plural}/{name}{namespace} cannot be read and is omitted: {error}"));
    eprintln!("{} {said}", Paint::for_stderr().tone(Tone::Bad, "warning:"));
}
