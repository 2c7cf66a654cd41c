//! The story of the demo: run, restart, roll back, delete, restore.

use anyhow::{Context, Result};
use local_cluster::files;

use super::kubectl::Kubectl;
use crate::workspace;

const EXAMPLE: &str = "examples/basicdeployment.yaml";
/// No registry has it.
const NO_IMAGE: &str = r#"{"spec":{"parameters":{"image":"registry.invalid/hello:2"}}}"#;
const READY: [&str; 4] = ["wait", "--for=condition=Ready", "basicdeployment/hello", "--timeout=120s"];
const BACKUPS_OF_HELLO: &str = "--selector=example.com/backup-of=hello";

/// Shows it; `image` is used if nothing can be pulled.
pub async fn tell(kubectl: &Kubectl<'_>, image: Option<&str>) -> Result<()> {
    run(kubectl, image).await?;
    restart(kubectl).await?;
    roll_back(kubectl, image).await?;
    delete_and_restore(kubectl).await
}

async fn run(kubectl: &Kubectl<'_>, image: Option<&str>) -> Result<()> {
    say("4. A few lines, as an application team writes them.");
    let example = example(image)?;
    println!("{}", indented(&example));
    kubectl.feed(&["apply", "--filename", "-"], &example).await?;
    kubectl.run(&READY).await?;
    kubectl.run(&["get", "basicdeployments,basicreplicasets,pods"]).await
}

async fn restart(kubectl: &Kubectl<'_>) -> Result<()> {
    say(
        "5. A restart is a resource too: it is bound to its target, carried out once, and says how far it is.",
    );
    command(kubectl, "examples/restart.yaml").await?;
    kubectl.run(&["get", "basicdeploymentrestarts,pods"]).await
}

async fn roll_back(kubectl: &Kubectl<'_>, image: Option<&str>) -> Result<()> {
    say("6. An image that nobody can pull: the old pods keep serving, and the top object names the blocker.");
    kubectl.run(&["patch", "basicdeployment", "hello", "--type=merge", "--patch", NO_IMAGE]).await?;
    let blocked = "--for=jsonpath={.status.blockedBy.kind}=Pod";
    kubectl.run(&["wait", blocked, "basicdeployment/hello", "--timeout=120s"]).await?;
    kubectl.run(&["get", "basicdeployments,pods"]).await?;
    say("   Rolled back by a command. The spec is not touched: it is followed again when it moves on.");
    command(kubectl, "examples/rollback.yaml").await?;
    kubectl.run(&["get", "basicdeployments,pods"]).await?;
    say("   The spec is corrected to what it was at first.");
    kubectl.feed(&["apply", "--filename", "-"], &example(image)?).await?;
    kubectl.run(&READY).await
}

async fn delete_and_restore(kubectl: &Kubectl<'_>) -> Result<()> {
    say("7. Deleted: it goes when its backup is proven, and not before.");
    kubectl.run(&["delete", "basicdeployment", "hello", "--timeout=120s"]).await?;
    let all = ["--namespace=catena-system", "get", "controllerrevisions", BACKUPS_OF_HELLO];
    kubectl.run(&all).await?;
    say("8. And it comes back from its backup.");
    let by_age = ["--sort-by=.metadata.creationTimestamp", "--output=name"];
    let backups = kubectl.read(&[&all[..], &by_age].concat()).await?;
    let latest = backups.lines().last().context("there is no backup of hello")?;
    let object = "--output=jsonpath={.data.object}";
    let object = kubectl.read(&["--namespace=catena-system", "get", latest, object]).await?;
    println!("What is in {latest}, given to");
    kubectl.feed(&["create", "--filename", "-"], &object).await?;
    say("   Its pods come when Kubernetes has collected those of the deleted one, which can take a minute.");
    kubectl.run(&READY).await?;
    kubectl.run(&["get", "basicdeployments"]).await
}

/// A line of the story.
pub fn say(line: &str) {
    println!("\n{line}");
}

/// Creates a command and waits for its end.
async fn command(kubectl: &Kubectl<'_>, file: &str) -> Result<()> {
    let created = kubectl.feed(&["create", "--filename", file, "--output=name"], "").await?;
    kubectl.run(&["wait", "--for=condition=Succeeded", &created, "--timeout=120s"]).await
}

/// The example without its comments.
fn example(image: Option<&str>) -> Result<String> {
    let text = files::read(&workspace::root().join(EXAMPLE))?;
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    let with_image = lines.map(|line| match (line.split_once("image: "), image) {
        (Some((indent, _)), Some(image)) => format!("{indent}image: {image}\n"),
        _ => format!("{line}\n"),
    });
    Ok(with_image.collect())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
