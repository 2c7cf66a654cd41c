use axum::http::Request;

/// Has the server refuse a field that it does not know, instead of dropping it in silence.
pub(super) fn strictly(request: &mut Request<Vec<u8>>) {
    let uri = request.uri();
    let mark = if uri.query().is_some() { '&' } else { '?' };
    if let Ok(uri) = format!("{uri}{mark}fieldValidation=Strict").parse() {
        *request.uri_mut() = uri;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ApiResource;
    use serde_json::json;

    use crate::{
        testing::{Answer, answering},
        write::Writer,
    };
    use operator_watch::{ObjectId, WatchedResource};

    #[tokio::test(start_paused = true)]
    async fn every_write_but_a_deletion_asks_for_strict_validation() {
        let (client, log) = answering(|_| Answer::Done);
        let writer = Writer::over(client, "test");
        let kind = WatchedResource::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let map = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}});
        let id = ObjectId { namespace: "shop", name: "web", uid: "u" };
        let own = writer.on_behalf_of(id);
        own.create(&kind, &map).await.unwrap();
        own.apply(&kind, &map).await.unwrap();
        own.merge(&kind, &map).await.unwrap();
        own.amend(&kind, id, &[]).await.unwrap();
        own.apply_status(&kind, id, &json!({"active": 1}), &[]).await.unwrap();
        own.delete(&kind, id).await.unwrap();
        let sent = log.take();
        let is_strict = |uri: &str| uri.ends_with("&fieldValidation=Strict");
        let strict: Vec<_> =
            sent.iter().filter(|sent| is_strict(&sent.uri)).map(|sent| &*sent.verb).collect();
        assert_eq!(strict, ["POST", "APPLY", "MERGE", "AMEND", "APPLY"]);
        assert!(sent.iter().any(|sent| sent.verb == "DELETE" && !is_strict(&sent.uri)), "{sent:?}");
    }
}
