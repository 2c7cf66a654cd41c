//! A reader who types the commands of the README and the pages behind it gets the promised results. Each command in a block `sh` or
//! `console` is taken from the page as it stands; `e2e/src/reader` defines how a reader's kubectl, helm and cargo differ here.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};
use e2e::{BACKUPS, CONTROLLERS, Cluster, Controller, Page, Reader, Release, Typed, checkout};
use futures::future::try_join_all;
use serde_json::json;

const README: &str = "README.md";
const BENCHMARKS: &str = "docs/benchmarks.md";
const COMMAND: &str = "docs/add-a-command.md";
const DEMO: &str = "docs/demo.md";
const INSTALL: &str = "docs/install.md";
const PLUGIN: &str = "docs/kubectl-catena.md";
const PROTECT: &str = "docs/protect-a-kind.md";
const RESTART: &str = "docs/restart-and-roll-back.md";
const RESTORE: &str = "docs/restore.md";
const STUCK: &str = "docs/when-something-is-stuck.md";

/// The pages that are followed here.
const FOLLOWED: [&str; 10] =
    [README, BENCHMARKS, COMMAND, DEMO, INSTALL, PLUGIN, PROTECT, RESTART, RESTORE, STUCK];

/// The kinds of blocks on a page: commands, a dialogue, a file, or something to look at.
const LANGUAGES: [&str; 5] = ["sh", "console", "yaml", "rust", "text"];

/// Prepares a reader, and then follows pages.
async fn follow(what: &str, first: &[&str], pages: &[&str]) -> Result<()> {
    let pages: Vec<Page> = pages.iter().map(|page| Page::read(page)).collect::<Result<_>>()?;
    let mut typed = Vec::new();
    for page in &pages {
        typed.extend(page.typed()?);
    }
    let is_changed = |controller: &Controller| {
        typed
            .iter()
            .any(|Typed { command, .. }| command.contains("helm ") && command.contains(controller.name()))
    };
    let changed: Vec<Controller> = CONTROLLERS.into_iter().filter(is_changed).collect();
    let cluster = match changed[..] {
        [] => Cluster::shared().await?,
        // A page may protect objects of other tests.
        ref some if !some.contains(&BACKUPS) => Cluster::changing(some).await?,
        _ => Cluster::alone().await?,
    };
    let namespace = cluster.namespace(what).await?;
    let reader = Reader::in_namespace(&namespace).await?;
    let read = read(&reader, first, &pages).await;
    // In any case, the temporary installation protects nothing any longer, and the suite's own one is restored.
    if changed.contains(&BACKUPS) {
        reader
            .does("helm uninstall backup-controller --namespace catena-system --ignore-not-found --wait")
            .await?;
    }
    try_join_all(changed.iter().map(async |controller| Release::set(*controller, &json!({})).await)).await?;
    for controller in changed {
        controller.until_ready(&cluster).await;
    }
    read
}

async fn read(reader: &Reader, first: &[&str], pages: &[Page]) -> Result<()> {
    for command in first {
        reader.does(command).await?;
    }
    for page in pages {
        reader.follows(page).await?;
    }
    Ok(())
}

/// The leftovers of the demo.
const LEFTOVERS: [&str; 2] = [
    "kubectl apply -f examples/basicdeployment.yaml",
    "kubectl wait --for=condition=Ready basicdeployment/hello --timeout=60s",
];

#[tokio::test]
async fn the_plugin_is_installed_and_the_benchmark_started_as_the_pages_say() -> Result<()> {
    follow("plugin", &[], &[PLUGIN, BENCHMARKS]).await
}

#[tokio::test]
async fn a_workload_is_restarted_and_rolled_back_as_the_page_says() -> Result<()> {
    follow("roll-back", &[], &[RESTART]).await
}

#[tokio::test]
async fn what_blocks_is_found_as_the_page_says() -> Result<()> {
    let bad = "kubectl patch basicdeployment hello --type=merge \
        --patch '{\"spec\": {\"parameters\": {\"image\": \"registry.invalid/missing:1\"}}}'";
    let blocked =
        "kubectl wait --for=jsonpath='{.status.blockedBy.reason}' basicdeployment/hello --timeout=60s";
    follow("stuck", &[LEFTOVERS[0], LEFTOVERS[1], bad, blocked], &[STUCK]).await
}

#[tokio::test]
async fn a_kind_of_commands_is_added_as_the_page_says() -> Result<()> {
    follow("command", &[], &[COMMAND]).await
}

#[tokio::test]
async fn a_command_that_fails_is_told_with_its_place() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("mistakes").await?;
    let reader = Reader::in_namespace(&namespace).await?;
    for (text, said) in [
        (
            "```sh\nkubectl get pods\nkubectl get nonsense\n```",
            "PAGE.md:3: this failed:\nkubectl get nonsense",
        ),
        ("```sh\nkubectl apply -f examples/nonsense.yaml\n```", "examples/nonsense.yaml"),
        ("```sh\nhelm template charts/command-binder --nonsense\n```", "unknown flag: --nonsense"),
        ("```sh\ncargo xtask nonsense\n```", "unrecognized subcommand 'nonsense'"),
        ("```sh\ncargo xtask demo --nonsense\n```", "there is no option --nonsense"),
        ("```sh\ncargo install nonsense\n```", "does not know how to run cargo install"),
        ("```sh\nnonsense\n```", "nonsense: command not found"),
        ("```sh\nfalse | cat\n```", "PAGE.md:2"),
        ("```sh\nkubectl get pods \\\n  --nonsense\n```", "PAGE.md:2"),
        ("```console\n$ kubectl get namespaces\nNAME   COLOUR\n```", "shows something else"),
        ("```yaml\nkubectl: get nodes\n```", "has no command"),
    ] {
        let page = Page { path: "PAGE.md".into(), text: text.into() };
        let told = reader.follows(&page).await.err().with_context(|| format!("it passed: {text}"))?;
        let told = format!("{told:#}");
        ensure!(told.contains(said), "{said:?} is not in: {told}");
    }
    Ok(())
}

/// All pages, by their paths.
fn pages() -> Result<Vec<Page>> {
    let mut pages = vec![Page::read(README)?];
    for directory in [".github", "docs", "docs/decisions"] {
        for entry in std::fs::read_dir(checkout().join(directory))? {
            let path = entry?.path();
            if path.is_file() {
                let name = path.file_name().unwrap_or_default().display().to_string();
                pages.push(Page::read(&format!("{directory}/{name}"))?);
            }
        }
    }
    Ok(pages)
}

/// All pages, and those of the charts, whose commands are the charts' own tests.
fn pages_with_those_of_charts() -> Result<Vec<Page>> {
    let mut pages = pages()?;
    for entry in std::fs::read_dir(checkout().join("charts"))? {
        let name = entry?.file_name();
        pages.push(Page::read(&format!("charts/{}/README.md", name.display()))?);
    }
    Ok(pages)
}

#[test]
fn no_page_with_commands_is_left_out() -> Result<()> {
    for page in pages()? {
        let is_followed = FOLLOWED.contains(&page.path.as_str());
        ensure!(is_followed != page.typed()?.is_empty(), "{}: followed: {is_followed}", page.path);
    }
    Ok(())
}

#[test]
fn each_block_says_what_it_is_so_that_no_command_is_passed_over() -> Result<()> {
    for page in pages()? {
        for block in page.blocks()? {
            let known = LANGUAGES.contains(&block.language.as_str());
            ensure!(known, "{}:{}: the block is of no kind of {LANGUAGES:?}", page.path, block.line - 1);
        }
    }
    Ok(())
}

#[test]
fn what_is_shown_of_a_file_is_in_that_file() -> Result<()> {
    let mut found = 0;
    for page in pages()? {
        for block in page.blocks()? {
            let first = block.lines.first().map(String::as_str).unwrap_or_default();
            let path = ["# examples/", "// examples/"].iter().find_map(|begin| first.strip_prefix(begin));
            ensure!(path.is_some() || block.language != "rust", "{}:{}: of no file", page.path, block.line);
            let Some(path) = path else { continue };
            let file = std::fs::read_to_string(checkout().join("examples").join(path))
                .with_context(|| format!("{}:{}: examples/{path}", page.path, block.line))?;
            let shown = block.lines[1..].join("\n");
            ensure!(file.contains(&shown), "{}:{}: not so in examples/{path}", page.path, block.line);
            found += 1;
        }
    }
    ensure!(found >= 13, "only {found} blocks show a file");
    Ok(())
}

/// The links in a text to files of the checkout: the path, which is empty for the page itself, and the heading.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let of_checkout = targets.filter(|target| !target.contains("://"));
    of_checkout.map(|target| target.split_once('#').unwrap_or((target, "")))
}

#[test]
fn each_link_leads_to_a_file_and_a_heading_in_it() -> Result<()> {
    let mut found = 0;
    for page in pages_with_those_of_charts()? {
        for (path, heading) in links(&page.text) {
            let directory = Path::new(&page.path).parent().context("a page is in a directory")?;
            // A heading without a file belongs to the page itself.
            let file = if path.is_empty() { page.path.clone().into() } else { directory.join(path) };
            let file = checkout().join(file);
            ensure!(file.exists(), "{}: {path} leads nowhere", page.path);
            if !heading.is_empty() {
                let text = std::fs::read_to_string(file)?;
                let is_found = headings(&text).any(|found| found == heading);
                ensure!(is_found, "{}: no heading {path}#{heading}", page.path);
            }
            found += 1;
        }
    }
    ensure!(found > 20, "only {found} links");
    Ok(())
}

#[test]
fn links_lead_from_the_readme_to_each_page() -> Result<()> {
    let mut reached = BTreeSet::new();
    let mut left = vec![checkout().join(README)];
    while let Some(file) = left.pop() {
        let file = file.canonicalize().with_context(|| format!("no file {}", file.display()))?;
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        if reached.insert(file.clone()) && is_page {
            let text = std::fs::read_to_string(&file)?;
            let directory = file.parent().context("a page is in a directory")?;
            let others = links(&text).map(|(path, _)| path).filter(|path| !path.is_empty());
            left.extend(others.map(|path| directory.join(path)));
        }
    }
    for page in pages_with_those_of_charts()? {
        let file = checkout().join(&page.path).canonicalize()?;
        // A directory stands for the pages in it.
        ensure!(reached.iter().any(|to| file.starts_with(to)), "no link leads to {}", page.path);
    }
    Ok(())
}

/// The tests that a text names, in backticks behind a link to their file.
fn named_tests(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).flat_map(|(path, after)| {
        let is_name = |word: &&str| {
            word.matches('_').count() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
        let quoted = after.split('`').skip(1).step_by(2).filter(is_name);
        quoted.filter(move |_| is_rust).map(move |name| (path, name))
    })
}

#[test]
fn each_test_that_a_page_names_is_in_the_file_that_it_links() -> Result<()> {
    let mut found = 0;
    for page in pages_with_those_of_charts()? {
        let directory = Path::new(&page.path).parent().context("a page is in a directory")?;
        for (path, name) in named_tests(&page.text) {
            let text = std::fs::read_to_string(checkout().join(directory).join(path))
                .with_context(|| format!("{}: {path}", page.path))?;
            ensure!(text.contains(&format!("fn {name}(")), "{}: no test {name} in {path}", page.path);
            found += 1;
        }
    }
    ensure!(found > 30, "only {found} tests are named");
    Ok(())
}

/// The headings of a page in the form that links use.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    })
}

/// Their pages change which kinds are protected.
mod alone {
    use super::{DEMO, INSTALL, LEFTOVERS, PROTECT, README, RESTORE, Result, follow};

    #[tokio::test]
    async fn the_readme_can_be_followed_from_the_demo_to_taking_all_away() -> Result<()> {
        follow("readme", &LEFTOVERS, &[README, DEMO, INSTALL]).await
    }

    #[tokio::test]
    async fn an_object_is_protected_and_restored_as_the_pages_say() -> Result<()> {
        e2e::needs!(NobodyElse);
        follow("protect", &[], &[PROTECT, RESTORE]).await
    }
}
