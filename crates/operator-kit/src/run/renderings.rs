//! The last rendering for each object, so that events that change neither what a template reads nor the settings need no
//! other.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::{BuildHasher, Hash},
};

use parking_lot::Mutex;

/// What follows from the rendering for an object, by the object's uid.
pub struct RenderCache<T> {
    last: Mutex<HashMap<String, Rendering<T>>>,
    hashing: RandomState,
}

struct Rendering<T> {
    /// A digest of all that it depends on.
    inputs: u64,
    result: T,
}

impl<T> Default for RenderCache<T> {
    fn default() -> Self {
        Self { last: Mutex::default(), hashing: RandomState::new() }
    }
}

impl<T: Clone> RenderCache<T> {
    /// What follows from the rendering for the object with this uid; `render` is only called if `inputs`, which are all that it
    /// reads, have changed since the last call. A generation says too little: what is shown of a spec also follows from the
    /// definition of its kind.
    pub fn of(&self, uid: &str, inputs: impl Hash, render: impl FnOnce() -> T) -> T {
        let inputs = self.hashing.hash_one(inputs);
        if let Some(last) = self.last.lock().get(uid).filter(|last| last.inputs == inputs) {
            return last.result.clone();
        }
        let result = render();
        self.last.lock().insert(uid.to_owned(), Rendering { inputs, result: result.clone() });
        result
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.last.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_rendered_again_before_its_inputs_change() {
        let (renderings, mut rendered) = (RenderCache::default(), 0);
        let mut of = |uid, inputs| {
            let render = || {
                rendered += 1;
                rendered
            };
            renderings.of(uid, inputs, render)
        };
        assert_eq!((of("a", "x"), of("a", "x")), (1, 1));
        assert_eq!(of("b", "x"), 2, "another object");
        assert_eq!((of("a", "y"), of("a", "y")), (3, 3));
        assert_eq!(of("b", "x"), 2, "it is forgotten because of another");
        renderings.forget("b");
        assert_eq!(of("b", "x"), 4);
    }
}
