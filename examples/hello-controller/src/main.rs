//! Keeps a `ConfigMap` beside each `ServiceAccount`.

use std::{convert::identity, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use operator_kit::run::{Backoffs, Controller, Identity, Operator, Queue, Requeue};
use operator_kit::write::{Ownership, Writer};
use operator_watch::{Cache, Failure, ObjectId, PrunedObject, Watch, WriteTarget};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

struct Cards {
    cards: Arc<Cache<PrunedObject>>,
    writer: Writer,
}

impl Controller for Cards {
    type Kind = ServiceAccount;
    type Observed = (Arc<ServiceAccount>, bool);
    type Action = Option<Value>;
    type Error = Failure;

    async fn observe(&self, account: Arc<ServiceAccount>, _: Backoffs) -> Result<Self::Observed, Failure> {
        if let Some(problem) = self.cards.watch().problem() {
            // A card that an incomplete cache lacks would be created again.
            return Err(Failure::transient("CardsNotObserved", problem));
        }
        let ObjectId { namespace, name, uid } = ObjectId::of(&*account);
        let cards = self.cards.by_index(namespace, &format!("card-of-{name}"));
        let has_card = cards.iter().any(|card| Ownership::is_controlled_by(&card.metadata, uid));
        Ok((account, has_card))
    }

    fn decide(&self, (account, has_card): &Self::Observed) -> Option<Value> {
        let ObjectId { namespace, name, .. } = ObjectId::of(&**account);
        let is_settled = *has_card || account.metadata.deletion_timestamp.is_some();
        // The name follows from the owner, so that a repeated create meets its own object.
        let metadata = json!({
            "name": format!("card-of-{name}"), "namespace": namespace,
            "ownerReferences": [Ownership::owner_reference(&**account)],
        });
        (!is_settled).then(|| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    }

    async fn act(&self, (account, _): Self::Observed, card: Option<Value>) -> Result<Requeue, Failure> {
        let Some(card) = card else { return Ok(Requeue::OnChange) };
        let kind = WriteTarget::of::<ConfigMap>(self.cards.watch().seen_version());
        self.writer.for_object(ObjectId::of(&*account)).create(&kind, &card).await?;
        Ok(Requeue::Written)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let about = "Keeps a ConfigMap beside each ServiceAccount";
    let hello = Identity { name: "hello-controller", version: "1.0.0", about, prefix: "hello" };
    let operator = Operator::<IgnoredAny>::start(hello, hello.parse()).await?;
    let watch = Watch::metadata_of::<ConfigMap>(&operator.client);
    let queue = Queue::default();
    let accounts = queue.clone();
    let cards = operator.watches.cache(watch, identity, move |card| {
        let ObjectId { namespace, name, .. } = ObjectId::of(card);
        if let Some(account) = name.strip_prefix("card-of-") {
            accounts.notify(namespace, account);
        }
    });
    let controller = Cards { cards, writer: operator.writer.clone() };
    operator.run(controller, queue).await
}
