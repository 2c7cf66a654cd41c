//! A day of broken clusters: in each scene, the sentence begins with the root cause, and the advice fits it.

use kube::core::DynamicObject;

use super::scene::ask;
use crate::why::facts::Surroundings;

/// A broken cluster, a question, and the expected answer.
pub struct Scene {
    pub name: &'static str,
    pub asked: &'static str,
    pub objects: Vec<DynamicObject>,
    pub surroundings: Surroundings,
    /// The beginning of the sentence.
    pub says: &'static str,
    /// A part of the advice, or of a note; empty if the object is well.
    pub advises: &'static str,
}

/// Fails with every scene that is answered wrongly, so that one run gives the score.
#[track_caller]
pub fn assert_right(scenes: &[Scene]) {
    let wrong: Vec<String> = scenes.iter().filter_map(wrong).collect();
    let right = scenes.len() - wrong.len();
    assert!(wrong.is_empty(), "{right} of {} scenes are right; wrong:\n{}", scenes.len(), wrong.join("\n"));
}

fn wrong(scene: &Scene) -> Option<String> {
    let answer = ask(scene.asked, &scene.objects, &scene.surroundings);
    let advice = answer.root_cause.as_ref().map(|cause| cause.advice.clone()).unwrap_or_default();
    let told = std::iter::once(&advice).chain(&answer.remarks).any(|text| text.contains(scene.advises));
    let told = told && (!scene.advises.is_empty() || answer.well);
    let is_right = answer.sentence.starts_with(scene.says) && told;
    (!is_right).then(|| {
        let remarks = answer.remarks.join("; ");
        format!("- {}: {}\n  advice: {advice}\n  notes: {remarks}", scene.name, answer.sentence)
    })
}
