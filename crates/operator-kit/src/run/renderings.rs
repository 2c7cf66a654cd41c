//! The last rendering for each object, so that events that change neither what a template reads nor the settings need no
//! other.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
};

use kube::api::ObjectMeta;
use parking_lot::Mutex;

use operator_watch::ObjectId;

/// What follows from the rendering for an object, by the object's uid.
pub struct Renderings<T> {
    last: Mutex<HashMap<String, Rendering<T>>>,
    hashing: RandomState,
}

struct Rendering<T> {
    /// A digest of all that it depends on.
    inputs: u64,
    result: T,
}

impl<T> Default for Renderings<T> {
    fn default() -> Self {
        Self { last: Mutex::default(), hashing: RandomState::new() }
    }
}

impl<T: Clone> Renderings<T> {
    /// What follows from the rendering for an object; `render` is only called if the object's spec, labels or annotations,
    /// or the settings have changed since the last call. The version of the settings has to be read before the settings.
    pub fn of(&self, object: &ObjectMeta, settings: u64, render: impl FnOnce() -> T) -> T {
        let uid = ObjectId::from(object).uid;
        // The API server counts the changes of the spec as generations, if the kind has the status as a subresource. A write of
        // the status changes nothing of it.
        let spec = object.generation.map_or_else(|| Err(&object.resource_version), Ok);
        let inputs = self.hashing.hash_one((settings, spec, &object.labels, &object.annotations));
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

    fn object(uid: &str, generation: i64) -> ObjectMeta {
        ObjectMeta { uid: Some(uid.to_owned()), generation: Some(generation), ..ObjectMeta::default() }
    }

    #[test]
    fn nothing_is_rendered_again_before_the_object_or_the_settings_change() {
        let (renderings, mut rendered) = (Renderings::default(), 0);
        let mut of = |object: &ObjectMeta, settings| {
            let render = || {
                rendered += 1;
                rendered
            };
            renderings.of(object, settings, render)
        };
        let (a, b) = (object("a", 1), object("b", 1));
        assert_eq!((of(&a, 1), of(&a, 1)), (1, 1));
        assert_eq!(of(&b, 1), 2, "another object");
        let mut a = object("a", 2);
        assert_eq!((of(&a, 1), of(&a, 1)), (3, 3), "the spec has changed");
        assert_eq!((of(&a, 2), of(&a, 2)), (4, 4), "the settings have changed");
        a.resource_version = Some("2".into());
        assert_eq!(of(&a, 2), 4, "a status was written");
        let texts = Some([("team".to_owned(), "shop".to_owned())].into());
        a.labels.clone_from(&texts);
        assert_eq!(of(&a, 2), 5, "a label has changed");
        a.annotations.clone_from(&texts);
        assert_eq!(of(&a, 2), 6, "an annotation has changed");
        a.labels = None;
        assert_eq!(of(&a, 2), 7, "an annotation is no label");
        assert_eq!(of(&b, 1), 2, "it is forgotten because of another");
        renderings.forget("b");
        assert_eq!(of(&b, 1), 8);
    }

    #[test]
    fn an_object_without_generations_is_rendered_again_after_each_write() {
        let (renderings, mut rendered) = (Renderings::default(), 0);
        for version in ["1", "1", "2"] {
            let mut object = object("a", 1);
            (object.generation, object.resource_version) = (None, Some(version.to_owned()));
            renderings.of(&object, 1, || rendered += 1);
        }
        assert_eq!(rendered, 2);
    }
}
