//! The three contracts are specified in one form.

use anyhow::{Context, Result, ensure};
use e2e::Page;

const CONTRACTS: [&str; 3] =
    ["docs/replica-contract.md", "docs/command-contract.md", "docs/backup-contract.md"];
/// The sections that each of them has, in this order. A page may have more.
const SECTIONS: [&str; 6] =
    ["Words", "What is required", "What is promised", "What is relied on", "Versions", "Check it"];
/// The words of RFC 2119 that the tables use.
const WORDS: [&str; 3] = ["MUST", "SHOULD", "MAY"];

/// The text of a section.
fn section<'p>(page: &'p Page, title: &str) -> Result<&'p str> {
    let heading = format!("\n## {title}\n");
    let (_, rest) = page.text.split_once(&heading).with_context(|| format!("{}: {title}", page.path))?;
    Ok(rest.split("\n## ").next().unwrap_or_default())
}

#[test]
fn each_contract_has_the_same_sections_and_defines_the_same_words() -> Result<()> {
    let pages = CONTRACTS.map(Page::read).into_iter().collect::<Result<Vec<_>>>()?;
    for page in &pages {
        let titles = page.text.lines().filter_map(|line| line.strip_prefix("## "));
        let known: Vec<&str> = titles.filter(|title| SECTIONS.contains(title)).collect();
        ensure!(known == SECTIONS, "{}: {known:?}", page.path);
        ensure!(section(page, "Words")? == section(&pages[0], "Words")?, "{}: other words", page.path);
        ensure!(page.text.contains("version `v1`"), "{}: no version", page.path);
    }
    Ok(())
}

#[test]
fn each_requirement_says_how_binding_it_is() -> Result<()> {
    for page in CONTRACTS.map(Page::read) {
        let page = page?;
        let rows = section(&page, "What is required")?.lines().filter(|line| line.starts_with("| "));
        let levels: Vec<&str> =
            rows.filter_map(|row| row.split('|').map(str::trim).find(|cell| WORDS.contains(cell))).collect();
        let heads = section(&page, "What is required")?.matches("\n|---").count();
        let rows = section(&page, "What is required")?.lines().filter(|line| line.starts_with("| ")).count();
        ensure!(levels.len() + heads == rows, "{}: {} of {rows}", page.path, levels.len());
        for word in WORDS {
            ensure!(levels.contains(&word), "{}: nothing {word}", page.path);
        }
    }
    Ok(())
}
