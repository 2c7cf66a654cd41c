//! Compares the definitions with those of earlier revisions, by the rules of docs/schema-policy.md.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use catena_api::compatibility::{Rule, changes, policy};
use local_cluster::output;
use serde_json::Value;

use crate::workspace;

/// The revision whose definitions the policy protects until the first release is tagged.
const POLICY_START: &str = "58a7a9b823ed136cfbb2679517cbe65c2934bc12";
/// Number of releases in which a version must have been deprecated before it may go.
const DEPRECATED_RELEASES: usize = 2;

/// The variables that git prefers to the directory it is told; it sets them for its own hooks.
const OF_ANOTHER_REPOSITORY: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"];

/// Fails with each change since one of the revisions that breaks the policy.
pub fn since(revisions: &[String]) -> Result<()> {
    let repository = Repository { root: workspace::root() };
    for revision in revisions {
        repository.has(revision)?;
    }
    repository.check(&present()?, revisions)
}

/// Likewise for the last releases, or for the start of the policy as long as there is none. A clone without them, such
/// as a shallow one, checks only what needs no history, and says so.
pub fn since_the_last_releases() -> Result<()> {
    let repository = Repository { root: workspace::root() };
    let mut revisions = repository.releases().unwrap_or_default();
    revisions.truncate(DEPRECATED_RELEASES);
    if revisions.is_empty() {
        revisions.push(POLICY_START.to_owned());
    }
    revisions.retain(|revision| match repository.has(revision) {
        Ok(()) => true,
        Err(error) => {
            println!("not compared with earlier definitions: {error:#}");
            false
        }
    });
    repository.check(&present()?, &revisions)
}

/// The definitions by name.
type Definitions = BTreeMap<String, Value>;

fn present() -> Result<Definitions> {
    let definitions = catena_api::crds().into_iter().map(|crd| Ok(named(serde_json::to_value(crd)?)));
    definitions.collect()
}

fn named(definition: Value) -> (String, Value) {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    (name, definition)
}

/// A clone of the project.
struct Repository {
    root: PathBuf,
}

impl Repository {
    fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut git = Command::new("git");
        for variable in OF_ANOTHER_REPOSITORY {
            git.env_remove(variable);
        }
        output(git.arg("-C").arg(&self.root).args(arguments)).with_context(|| format!("git {}", arguments[0]))
    }

    fn has(&self, revision: &str) -> Result<()> {
        let commit = format!("{revision}^{{commit}}");
        self.git(&["rev-parse", "--verify", "--end-of-options", &commit]).map(drop).with_context(|| {
            format!("the revision {revision} is not in this clone: fetch it, for example with git fetch --tags --unshallow")
        })
    }

    /// The tags of releases in this history; the latest first.
    fn releases(&self) -> Result<Vec<String>> {
        let tags = self.git(&["tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname"])?;
        Ok(tags.lines().map(str::to_owned).collect())
    }

    fn definitions(&self, revision: &str) -> Result<Definitions> {
        let files = self.git(&["ls-tree", "--name-only", revision, "--", "crds/"])?;
        let yaml =
            files.lines().filter(|file| Path::new(file).extension().is_some_and(|found| found == "yaml"));
        let definition = |file: &str| {
            let text = self.git(&["show", &format!("{revision}:{file}")])?;
            let definition =
                serde_saphyr::from_str(&text).with_context(|| format!("{file} at {revision} is not YAML"))?;
            Ok(named(definition))
        };
        yaml.map(definition).collect()
    }

    fn check(&self, present: &Definitions, revisions: &[String]) -> Result<()> {
        let mut wrong = Vec::new();
        for (name, definition) in present {
            wrong.extend(policy(definition).iter().map(|finding| format!("{name}: {finding}")));
        }
        for revision in revisions {
            for (name, former) in self.definitions(revision)? {
                let Some(definition) = present.get(&name) else {
                    wrong.push(format!("{name}, since {revision}: the definition is removed"));
                    continue;
                };
                let broken = changes(&former, definition).into_iter();
                // Where an earlier revision does not deprecate the version yet, another finding says so.
                let broken = broken.filter(|finding| finding.rule != Rule::DeprecatedVersionRemoved);
                wrong.extend(broken.map(|finding| format!("{name}, since {revision}: {finding}")));
            }
        }
        if !wrong.is_empty() {
            bail!("the definitions break docs/schema-policy.md:\n{}", wrong.join("\n"));
        }
        let compared = if revisions.is_empty() { "no revision".to_owned() } else { revisions.join(" and ") };
        println!("{} definitions keep the schema policy, compared with {compared}", present.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn definition(fields: &Value, more: &Value) -> Value {
        let spec = json!({"type": "object", "properties": fields});
        let mut version = json!({
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            version[key] = value.clone();
        }
        json!({"metadata": {"name": "things.x.dev"}, "spec": {"versions": [version]}})
    }

    fn only(definition: Value) -> Definitions {
        [named(definition)].into()
    }

    /// A repository in which each definition is a revision with a tag: v0.1.0, v0.2.0, …
    fn repository(directory: &Path, released: &[Value]) -> Repository {
        let repository = Repository { root: directory.to_owned() };
        repository.git(&["init", "--quiet"]).unwrap();
        fs::create_dir(directory.join("crds")).unwrap();
        for (number, definition) in released.iter().enumerate() {
            fs::write(directory.join("crds/things.x.dev.yaml"), definition.to_string()).unwrap();
            repository.git(&["add", "."]).unwrap();
            let author = ["-c", "user.name=a", "-c", "user.email=a@x.dev"];
            let commit = ["commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message=a"];
            repository.git(&[&author[..], &commit].concat()).unwrap();
            repository.git(&["tag", &format!("v0.{}.0", number + 1)]).unwrap();
        }
        repository
    }

    #[test]
    fn a_repository_that_a_hook_of_git_names_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let developers = directory.path().join("developers");
        // Another run of a test here, because variables of this process cannot be set while other tests run.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{}::a_field_that_was_there_in_a_revision_is_missed", module())])
            .env("GIT_DIR", &developers)
            .env("GIT_INDEX_FILE", developers.join("index"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        assert!(!developers.exists(), "git wrote to the repository of the hook");
    }

    /// The path of these tests, as the test program names it.
    fn module() -> &'static str {
        module_path!().split_once("::").unwrap().1
    }

    #[test]
    fn a_field_that_was_there_in_a_revision_is_missed() {
        let directory = tempfile::tempdir().unwrap();
        let size = json!({"size": {"type": "integer"}});
        let released = [definition(&size, &json!({})), definition(&json!({}), &json!({}))];
        let repository = repository(directory.path(), &released);
        assert_eq!(repository.releases().unwrap(), ["v0.2.0", "v0.1.0"]);
        let check = |present: Definitions, revision: &str| {
            repository.check(&present, &[revision.to_owned()]).map_err(|error| error.to_string())
        };
        let error = check(only(definition(&json!({}), &json!({}))), "v0.1.0").unwrap_err();
        assert!(error.contains("things.x.dev, since v0.1.0: v1 spec.size"), "{error}");
        let error = check(Definitions::new(), "v0.1.0").unwrap_err();
        assert!(error.contains("the definition is removed"), "{error}");
        check(only(definition(&size, &json!({}))), "v0.1.0").unwrap();
        check(only(definition(&size, &json!({}))), "v0.2.0").unwrap();
    }

    #[test]
    fn a_version_goes_after_two_releases_in_which_it_was_deprecated() {
        let directory = tempfile::tempdir().unwrap();
        let with = |old: &Value| {
            let mut definition = definition(&json!({}), &json!({}));
            let mut earlier = definition["spec"]["versions"][0].clone();
            earlier["name"] = "v0".into();
            earlier["storage"] = false.into();
            for (key, value) in old.as_object().into_iter().flatten() {
                earlier[key] = value.clone();
            }
            definition["spec"]["versions"].as_array_mut().unwrap().push(earlier);
            definition
        };
        let deprecated = with(&json!({"deprecated": true, "deprecationWarning": "use v1"}));
        let repository =
            repository(directory.path(), &[with(&json!({})), deprecated.clone(), deprecated.clone()]);
        let without = only(definition(&json!({}), &json!({})));
        let revisions = |names: [&str; 2]| names.map(str::to_owned);
        repository.check(&only(deprecated), &revisions(["v0.2.0", "v0.1.0"])).unwrap();
        let error = repository.check(&without, &revisions(["v0.2.0", "v0.1.0"])).unwrap_err().to_string();
        assert!(error.contains("since v0.1.0") && error.contains("no longer served"), "{error}");
        repository.check(&without, &revisions(["v0.3.0", "v0.2.0"])).unwrap();
    }

    #[test]
    fn a_revision_that_is_not_here_is_named_with_the_way_to_get_it() {
        let directory = tempfile::tempdir().unwrap();
        let repository = repository(directory.path(), &[]);
        let error = repository.has("v9").unwrap_err().to_string();
        assert!(error.contains("v9") && error.contains("git fetch"), "{error}");
    }
}
