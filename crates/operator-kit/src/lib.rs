//! The framework of every controller of Catena.
//!
//! A controller defines what it watches, and how it observes, decides and acts ([`run::Controller`]). The kit does the
//! rest, in six modules, each of which imports only from those below it:
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | start-up, settings, leader election, the queue with one backoff per object, passes |
//! | [`mod@write`] | the only way to write, and to read one's own writes |
//! | [`watch`] | watches with one backoff each, caches, live look-ups |
//! | [`render`] | templates, expressions, hashes |
//! | [`report`] | failures, conditions, Events, health, metrics, logs |
//! | [`object`] | which object is meant |
//!
//! A whole controller, which keeps a `ConfigMap` beside each `ServiceAccount`:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
//! use kube::{Api, discovery::ApiResource};
//! use operator_kit::{
//!     object::ObjectId,
//!     report::Failure,
//!     run::{Arguments, Attempt, Controller, Next, Operator, Queue, Validate},
//!     watch::{Cache, Row, Watch, WatchedResource},
//!     write::{Writer, owner::controller_of, owner::controller_reference},
//! };
//! use serde_json::{Value, json};
//!
//! /// The row of a `ConfigMap`, with its owner.
//! struct Card { namespace: String, name: String, uid: String, owner: Option<String> }
//!
//! impl Card {
//!     fn of(map: ConfigMap) -> Self {
//!         let owner = controller_of(&map.metadata).map(|owner| owner.uid.clone());
//!         let ObjectId { namespace, name, uid } = ObjectId::of(&map);
//!         Self { namespace: namespace.into(), name: name.into(), uid: uid.into(), owner }
//!     }
//! }
//!
//! impl Row for Card {
//!     fn id(&self) -> ObjectId<'_> {
//!         ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
//!     }
//!     fn index_key(&self) -> Option<&str> { self.owner.as_deref() }
//! }
//!
//! struct Cards { cards: Arc<Cache<Card>>, writer: Writer }
//!
//! struct Observed { account: Arc<ServiceAccount>, has_card: bool }
//!
//! #[derive(Debug)]
//! enum Action { Create(Value), Settle }
//!
//! impl Controller for Cards {
//!     type Kind = ServiceAccount;
//!     type Observed = Observed;
//!     type Action = Action;
//!     type Error = Failure;
//!
//!     async fn observe(&self, account: Arc<ServiceAccount>, _: Attempt) -> Result<Observed, Failure> {
//!         if let Some(problem) = self.cards.watch().problem() {
//!             return Err(Failure::transient("NotObserved", format!("the cards cannot be observed: {problem}")));
//!         }
//!         let ObjectId { namespace, uid, .. } = ObjectId::of(&*account);
//!         let cards = self.cards.group(namespace, uid);
//!         Ok(Observed { account, has_card: !cards.is_empty() })
//!     }
//!
//!     fn decide(&self, Observed { account, has_card }: &Observed) -> Action {
//!         let ObjectId { namespace, name, .. } = ObjectId::of(&**account);
//!         if *has_card || account.metadata.deletion_timestamp.is_some() {
//!             return Action::Settle;
//!         }
//!         // The name follows from the owner, so a repeated create meets its own object.
//!         Action::Create(json!({
//!             "apiVersion": "v1", "kind": "ConfigMap",
//!             "metadata": {
//!                 "name": format!("card-of-{name}"),
//!                 "namespace": namespace,
//!                 "ownerReferences": [controller_reference(&**account)],
//!             },
//!         }))
//!     }
//!
//!     async fn act(&self, observed: Observed, action: Action) -> Result<Next, Failure> {
//!         let Action::Create(card) = action else { return Ok(Next::Settled) };
//!         let cards = WatchedResource::new(ApiResource::erase::<ConfigMap>(&()), self.cards.watch().seen());
//!         self.writer.on_behalf_of(ObjectId::of(&*observed.account)).create(&cards, &card).await?;
//!         Ok(Next::Written)
//!     }
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Settings {}
//!
//! impl Validate for Settings {
//!     fn validate(&self) -> Result<(), Vec<String>> { Ok(()) }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> anyhow::Result<()> {
//!     let about = "Keeps a ConfigMap beside each ServiceAccount";
//!     let arguments = Arguments::parse("cards", "1.0.0", about);
//!     let operator = Operator::<Settings>::start("cards", arguments).await?;
//!     let queue = Queue::default();
//!     let watch = Watch::new(Api::<ConfigMap>::all(operator.client()), "ConfigMap");
//!     let cards = operator.watches().cache(watch, Card::of, |_| {});
//!     let writer = operator.writer();
//!     operator.run(Cards { cards, writer }, queue).await
//! }
//! ```

pub mod object;
pub mod render;
pub mod report;
pub mod run;
#[cfg(feature = "testing")]
pub mod testing;
pub mod watch;
pub mod write;
