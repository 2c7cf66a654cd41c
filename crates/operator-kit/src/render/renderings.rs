//! The last rendering for each object, so that events that change neither the object nor the settings need no other.

use std::collections::HashMap;

use kube::api::ObjectMeta;
use parking_lot::Mutex;

use crate::object::ObjectId;

/// What follows from the rendering for an object, by the object's uid.
pub struct Renderings<T>(Mutex<HashMap<String, Rendering<T>>>);

struct Rendering<T> {
    resource_version: Option<String>,
    settings: u64,
    result: T,
}

impl<T> Default for Renderings<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Renderings<T> {
    /// What follows from the rendering for an object; `render` is only called if the object or the settings have changed
    /// since the last call. The version of the settings has to be read before the settings.
    pub fn of(&self, object: &ObjectMeta, settings: u64, render: impl FnOnce() -> T) -> T {
        let uid = ObjectId::from(object).uid;
        if let Some(last) = self.0.lock().get(uid)
            && last.settings == settings
            && last.resource_version == object.resource_version
        {
            return last.result.clone();
        }
        let result = render();
        let resource_version = object.resource_version.clone();
        let rendering = Rendering { resource_version, settings, result: result.clone() };
        self.0.lock().insert(uid.to_owned(), rendering);
        result
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_rendered_again_before_the_object_or_the_settings_change() {
        let (renderings, mut rendered) = (Renderings::default(), 0);
        let mut of = |uid: &str, version: &str, settings| {
            let (uid, resource_version) = (Some(uid.to_owned()), Some(version.to_owned()));
            let object = ObjectMeta { uid, resource_version, ..ObjectMeta::default() };
            let render = || {
                rendered += 1;
                rendered
            };
            renderings.of(&object, settings, render)
        };
        assert_eq!((of("a", "1", 1), of("a", "1", 1)), (1, 1));
        assert_eq!(of("b", "1", 1), 2, "another object");
        assert_eq!((of("a", "2", 1), of("a", "2", 1)), (3, 3), "the object has changed");
        assert_eq!((of("a", "2", 2), of("a", "2", 2)), (4, 4), "the settings have changed");
        assert_eq!(of("b", "1", 1), 2, "it is forgotten because of another");
        renderings.forget("b");
        assert_eq!(of("b", "1", 1), 5);
    }
}
