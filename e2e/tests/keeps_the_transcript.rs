//! The output of the plugin in docs/kubectl-catena.md is its real output, and the README quotes that page. The README also shows the
//! output of kubectl at that moment.

use anyhow::{Context, Result, ensure};
use catena_api::BasicDeployment;
use e2e::{Cluster, Namespace, Page, WAIT_TIMEOUT, catena, checkout, deployment, eventually, kubectl};
use serde_json::json;

const PAGE: &str = "docs/kubectl-catena.md";
const README: &str = "README.md";
/// The command of kubectl whose output the README shows.
const GET: &str = "kubectl get basicdeployments";
const BEGIN: &str = "<!-- transcript -->\n```console\n";
const END: &str = "```\n<!-- /transcript -->";
/// The name of the test's namespace on the page.
const SHOWN_AS: &str = "shop";

#[tokio::test]
async fn the_transcript_in_the_docs_is_what_the_plugin_prints() -> Result<()> {
    // The page shows the output of fake nodes.
    e2e::needs!(HostProcesses);
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("transcript").await?;
    let (seen, table) = play(&namespace).await?;
    let seen = seen.replace(&namespace.name, SHOWN_AS);
    let text = Page::read(PAGE)?.text;
    let (before, rest) = text.split_once(BEGIN).context("the page has no transcript")?;
    let (shown, after) = rest.split_once(END).context("the transcript has no end")?;
    if std::env::var_os("CATENA_WRITE_TRANSCRIPT").is_some() {
        std::fs::write(checkout().join(PAGE), format!("{before}{BEGIN}{seen}{END}{after}"))?;
        return Ok(());
    }
    let (shown, seen) = (without_chance(shown), without_chance(&seen));
    assert_eq!(shown, seen, "{PAGE} shows something else; CATENA_WRITE_TRANSCRIPT=1 writes it anew");
    let shown = Page::read(README)?.typed()?.into_iter().find(|typed| typed.command == GET);
    let shown = shown.and_then(|typed| typed.shown).with_context(|| format!("{README} shows no {GET}"))?;
    assert_eq!(without_chance(&shown.join("\n")), without_chance(&table), "{README} shows another table");
    Ok(())
}

#[test]
fn what_the_readme_shows_of_the_plugin_is_how_the_transcript_begins() -> Result<()> {
    let transcript = Page::read(PAGE)?.typed()?;
    let mut shown = Page::read(README)?.typed()?;
    shown.retain(|typed| typed.shown.is_some() && typed.command.starts_with("kubectl catena"));
    ensure!(shown.len() >= 2, "the README shows {} commands of the plugin", shown.len());
    for typed in shown {
        let kept = transcript.iter().find(|kept| kept.command == typed.command);
        let kept = kept.and_then(|kept| kept.shown.as_ref());
        let kept =
            without_chance(&kept.with_context(|| format!("{PAGE} has no {}", typed.command))?.join("\n"));
        let readme = without_chance(&typed.shown.unwrap_or_default().join("\n"));
        ensure!(
            kept.starts_with(&readme),
            "{README}:{}: {readme:#?} is not how {PAGE} shows it: {kept:#?}",
            typed.line
        );
    }
    Ok(())
}

/// A bad image, found and rolled back: the dialogue with the plugin, and what kubectl shows before the rollback.
async fn play(namespace: &Namespace) -> Result<(String, String)> {
    let mut transcript = Vec::new();
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    namespace.until_ready_pods(3).await;
    transcript.push(entry(namespace, &["tree", "web"]).await?);

    let image = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}}});
    namespace.merge::<BasicDeployment>("web", image).await?;
    eventually("the cause is found", WAIT_TIMEOUT, async || {
        let said = catena(&namespace.name, &["why", "web", "-o", "json"]).await.and_then(|said| said.json());
        let said = said.map_err(|error| json!(format!("{error:#}")))?;
        // The whole chain has noticed it.
        let is_known = said["evidence"].as_array().is_some_and(|evidence| evidence.len() == 3)
            && said["evidence"][2]["message"].to_string().contains("ImagePullBackOff");
        if is_known { Ok(()) } else { Err(said) }
    })
    .await;
    transcript.push(entry(namespace, &["why", "web"]).await?);
    let get: Vec<&str> = GET.split(' ').skip(1).chain(["--namespace", &namespace.name]).collect();
    let table = kubectl(&get).await?;
    transcript.push(entry(namespace, &["history", "web"]).await?);
    transcript.push(entry(namespace, &["history", "web", "--revision", "2"]).await?);
    transcript.push(entry(namespace, &["rollback", "web", "--wait"]).await?);

    namespace.until_ready("web").await;
    namespace
        .until_pods("only the three old pods are there", |pods| {
            pods.len() == 3 && pods.iter().all(e2e::is_ready)
        })
        .await;
    namespace.until_no_pod_ends().await;
    transcript.push(entry(namespace, &["tree", "web"]).await?);
    Ok((transcript.join("\n"), table))
}

/// A command with its output; of the progress on standard error only the end.
async fn entry(namespace: &Namespace, arguments: &[&str]) -> Result<String> {
    let said = catena(&namespace.name, arguments).await?;
    // `why` tells with its exit code that the object is not well.
    let expected = if arguments[0] == "why" { 5 } else { 0 };
    ensure!(said.code == expected, "{arguments:?}: {said:?}");
    let end = said.err.lines().last().map_or_else(String::new, |line| format!("{line}\n"));
    Ok(format!("$ kubectl catena {}\n{}{end}", arguments.join(" "), said.out))
}

/// The words of each line, without those that differ from run to run: times, and generated names.
fn without_chance(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_whitespace().map(stable).collect::<Vec<_>>().join(" "));
    lines.collect()
}

fn stable(word: &str) -> String {
    let bare = word.trim_end_matches([')', '.', ',', ';', ':']);
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_age = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with(['s', 'm', 'h', 'd'])
        && bare.chars().all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | 'd'));
    let is_hash = bare.len() == 8 && bare.chars().all(|c| c.is_ascii_hexdigit());
    if is_age || is_hash || (is_number(bare) && bare.contains('.')) {
        return "…".to_owned();
    }
    match word.split_once("web-") {
        Some((kind, made)) => {
            let verb = made.split_once('-').map_or("", |(verb, _)| verb);
            format!("{kind}web-{verb}…")
        }
        None => word.to_owned(),
    }
}
