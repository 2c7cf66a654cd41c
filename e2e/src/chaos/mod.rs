//! What happens to a controller when processes, the network and the API server fail at any point: a story is told while
//! faults befall the controllers, and afterwards the world must be as after an undisturbed story.

mod answer;
mod campaign;
mod cast;
mod census;
mod menu;
mod plan;
mod precondition;
mod proxy;
mod scope;
mod shared;
mod state;
mod story;
mod table;
mod watch;
mod world;

pub use campaign::Campaign;
pub use menu::Menu;
pub use plan::{Commit, Fault, ListFault, Moment, Plan, WatchFault, WriteFault};
pub use proxy::ChaosProxy;
pub use state::Counts;
