//! The behaviour of controllers when processes, the network and the API server fail at any point: a story runs with
//! faults, and its result must be that of an undisturbed story.

mod answer;
mod campaign;
mod cast;
mod census;
mod door;
mod keeper;
mod menu;
mod plan;
mod precondition;
mod proxy;
mod revision_order;
mod scope;
mod state;
mod story;
mod table;
mod watch;
mod world;

pub use campaign::Campaign;
pub use menu::Menu;
pub use plan::{Commit, Ending, Fault, ListFault, Moment, Plan, WatchFault, WriteFault};
pub use proxy::ChaosProxy;
pub use state::Counts;
